"""A pod's record from the samples of its series.

Times of the API are exact to the second. An end without one lies between two scrapes: it is an observation gap, charged
up to its start.
"""

from typing import Final

from msgspec.structs import replace

from gputally.accounting.facts.lifetime import REJECTION_REASONS, never_held
from gputally.accounting.facts.node_clock import OFF_US
from gputally.accounting.facts.outcome import PREEMPTION_REASONS
from gputally.accounting.terms.classify import kept_keys
from gputally.errors import MalformedObject
from gputally.importing.kube_state import pod_samples, series_names
from gputally.importing.kube_state.pod_samples import (
    TERMINAL,
    PodSamples,
    RejectedSeries,
    Sightings,
    UnusableSeries,
    amount_of,
)
from gputally.model.allocation import End, Gap, Result
from gputally.model.kube.meta import OwnerReference
from gputally.model.kube.pods import Container, Pod, PodMeta, PodSpec, Resources
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.shares.request import effective_units
from gputally.shares.schemes import describes

_REASONS: Final = (pod_samples.DISRUPTION, pod_samples.REASON)
"""Since 2.20, the first has the scheduler's preemption.

Source: kubernetes/kube-state-metrics#3088 and #2892, which adds it to the second.
"""
NONE: Final = "<none>"
"""What `kube_pod_owner` has instead of an owner."""


def sampled_pod(samples: PodSamples, rules: Rules) -> PodRecord | RejectedSeries | None:
    """The record, without classification and prices; None for a pod without GPUs or that was never bound."""
    try:
        if samples.unusable:
            raise samples.unusable
        return _pod(samples, rules)
    except UnusableSeries as error:
        info = samples.info
        name = f"pod {series_names.field(info, 'namespace')}/{series_names.field(info, 'pod')} ({samples.uid})"
        return RejectedSeries(name, error.series, str(error))


def _pod(samples: PodSamples, rules: Rules) -> PodRecord | None:
    units, info = _units(samples, rules), samples.info
    if not info:
        raise UnusableSeries(pod_samples.INFO, "is missing; kube-state-metrics must export it, and Prometheus keep it")
    node = pod_samples.node_of(info)
    if not units or not node:
        return None
    created_us = samples.time_us(pod_samples.CREATED)
    scheduled_us = samples.time_us(pod_samples.SCHEDULED) or samples.time_us(pod_samples.STARTED)
    if scheduled_us is None:
        raise UnusableSeries(pod_samples.SCHEDULED, "is missing, and kube_pod_start_time too; the pod has no start")
    _expect_order(created_us, scheduled_us, samples)
    record = PodRecord(
        uid=samples.uid,
        namespace=series_names.field(info, "namespace"),
        name=series_names.field(info, "pod"),
        units=units,
        class_name=info.get("priority_class", ""),
        labels=tuple(sorted(series_names.kubernetes_labels(samples.labels, kept_keys(rules)).items())),
        owner=_owner(samples),
        created_us=scheduled_us if created_us is None else min(created_us, scheduled_us),
        node=node,
        scheduled_us=scheduled_us,
        started_us=_started_us(samples, scheduled_us),
    )
    return None if _never_active(record, samples) else _ended(record, samples)


def _expect_order(created_us: int | None, scheduled_us: int, samples: PodSamples) -> None:
    """A pod is created, then bound, then scraped; what a broken clock wrote is not billed."""
    if created_us is not None and scheduled_us < created_us - OFF_US:
        raise UnusableSeries(pod_samples.SCHEDULED, "is before kube_pod_created; a clock was wrong")
    if scheduled_us > samples.until_us + OFF_US:
        raise UnusableSeries(pod_samples.SCHEDULED, "is after the scrapes that showed the pod; a clock was wrong")


def _never_active(record: PodRecord, samples: PodSamples) -> bool:
    """Whether no scrape showed the pod between its binding and its terminal phase, and no container ran.

    Kubelets reject pods that way, for reasons that `kube_pod_status_reason` does not know.
    """
    seen = samples.sightings
    has_run = record.started_us is not None or samples.time_us(pod_samples.COMPLETED) is not None
    if samples.phase not in TERMINAL or has_run or seen is None:
        return False
    return (seen.active_us or 0) <= (record.scheduled_us or 0)


def _units(samples: PodSamples, rules: Rules) -> tuple[tuple[str, int], ...]:
    """The devices by resource. Of init containers, sidecars are assumed to precede the others."""
    about = [each.metric for each in samples.of(pod_samples.INIT_INFO)]
    restarts = {series_names.field(each, "container"): each.get("restart_policy") for each in about}
    inits = [
        Container(resources=Resources(requests=requests), restart_policy=restarts.get(name) or None)
        for name, requests in _requests(samples, pod_samples.INIT_REQUESTS, rules).items()
    ]
    mains = [
        Container(resources=Resources(requests=requests))
        for requests in _requests(samples, pod_samples.REQUESTS, rules).values()
    ]
    inits.sort(key=lambda each: each.restart_policy != "Always")
    spec = PodSpec(containers=tuple(mains), init_containers=tuple(inits))
    try:
        units = effective_units(Pod(metadata=PodMeta(uid=samples.uid), spec=spec), rules)
    except MalformedObject as error:
        raise UnusableSeries(pod_samples.REQUESTS, str(error)) from None
    if parts := [name for name, _ in units if describes(name, rules)]:
        raise UnusableSeries(pod_samples.REQUESTS, f"{parts[0]} needs the GPUs' memory, which kube-state-metrics lacks")
    return units


def _requests(samples: PodSamples, metric: str, rules: Rules) -> dict[str, dict[str, str | int]]:
    """The requested GPUs by container; the same ones of several scrapers count once."""
    found: dict[str, dict[str, str | int]] = {}
    for each in samples.of(metric):
        if name := series_names.resource_named(each.metric.get("resource", ""), rules):
            found.setdefault(series_names.field(each.metric, "container"), {})[name] = amount_of(metric, each.text)
    return found


def _owner(samples: PodSamples) -> OwnerReference | None:
    for each in samples.of(pod_samples.OWNER):
        kind, name = each.metric.get("owner_kind", NONE), each.metric.get("owner_name", NONE)
        if each.metric.get("owner_is_controller") == "true" and NONE not in (kind, name):
            return OwnerReference(kind=kind, name=name, uid="", controller=True)
    return None


def _started_us(samples: PodSamples, scheduled_us: int) -> int | None:
    """When the first container ran; of one that restarted, when the pod was initialized, or the kubelet accepted it.

    A runtime writes 1970 for one that failed to start.
    """
    started_us = samples.time_us(pod_samples.RUNNING)
    if any(each.number > 0 for each in samples.of(pod_samples.RESTARTS)):
        started_us = samples.time_us(pod_samples.INITIALIZED) or samples.time_us(pod_samples.STARTED) or started_us
    if started_us is not None and started_us > samples.until_us + OFF_US:
        raise UnusableSeries(pod_samples.RUNNING, "is after the scrapes that showed it; the node's clock was wrong")
    return None if started_us is None or started_us < scheduled_us - OFF_US else max(started_us, scheduled_us)


def _ended(record: PodRecord, samples: PodSamples) -> PodRecord:
    """The record with its deletion, end and result."""
    record = replace(record, deletion_us=_deletion_us(samples, record.scheduled_us or 0))
    if any(reason in PREEMPTION_REASONS for metric in _REASONS for reason in samples.set_labels(metric, "reason")):
        record = replace(record, preempted_us=record.deletion_us)
    if samples.phase in TERMINAL:
        record = replace(record, result=_result(samples))
    if samples.has_exact_end:
        return _finished(record, samples)
    seen = samples.sightings
    if seen is None:
        if samples.is_alive and samples.phase not in TERMINAL:
            return record
        raise UnusableSeries(pod_samples.PHASE, "has no samples at the end of the pod")
    if seen.terminal_us is not None:
        return _terminal(record, seen, seen.terminal_us, samples)
    from_us = max(seen.seen_us, record.scheduled_us or 0)
    return replace(record, end_us=from_us, end_by=End.VANISHED, gap=_gap(from_us, seen.absent_us))


def _finished(record: PodRecord, samples: PodSamples) -> PodRecord:
    end_us, start_us = samples.time_us(pod_samples.COMPLETED, last=True) or 0, record.scheduled_us or 0
    if end_us < start_us - OFF_US:
        raise UnusableSeries(
            pod_samples.COMPLETED, "is before kube_pod_status_scheduled_time; the node's clock was wrong"
        )
    if end_us > samples.until_us + OFF_US:
        raise UnusableSeries(pod_samples.COMPLETED, "is after the scrapes that showed it; the node's clock was wrong")
    return replace(record, end_us=max(end_us, start_us), end_by=End.FINISHED)


def _terminal(record: PodRecord, seen: Sightings, terminal_us: int, samples: PodSamples) -> PodRecord:
    """A pod whose phase became terminal between two scrapes, and some of whose containers have no end."""
    reasons = samples.set_labels(pod_samples.REASON, "reason")
    by = End.REJECTED if any(each.startswith(REJECTION_REASONS) for each in reasons) else End.TERMINAL
    start_us = record.scheduled_us or 0
    known_us = min(samples.time_us(pod_samples.COMPLETED, last=True) or 0, terminal_us)
    from_us = max(start_us, record.started_us or 0, seen.active_us or 0, known_us)
    record = replace(record, end_us=from_us, end_by=by, accepted=by is not End.REJECTED or _was_accepted(samples, seen))
    return replace(record, gap=None if never_held(record, by) else _gap(from_us, terminal_us))


def _was_accepted(samples: PodSamples, seen: Sightings) -> bool:
    """Whether the kubelet had accepted a pod that it rejected: its start time precedes a scrape that showed it active.

    A kubelet that rejects a pod at first sight sets its start time together with the terminal phase.
    """
    accepted_us = samples.time_us(pod_samples.STARTED)
    return accepted_us is not None and seen.active_us is not None and accepted_us + OFF_US <= seen.active_us


def _gap(from_us: int, to_us: int | None) -> Gap | None:
    return Gap(from_us=from_us, to_us=to_us) if to_us is not None and to_us > from_us else None


def _deletion_us(samples: PodSamples, scheduled_us: int) -> int | None:
    """When the deletion was first seen, the deletion time at the latest: the grace period is not known.

    It only divides the allocation into states. A deletion that was requested before the pod was terminal precedes its
    end.
    """
    limit_us, seen = samples.time_us(pod_samples.DELETION), samples.sightings
    if limit_us is None:
        return None
    times = [limit_us, *([seen.deleting_us] if seen and seen.deleting_us is not None else [])]
    completed_us = samples.time_us(pod_samples.COMPLETED, last=True)
    if completed_us is not None and samples.phase in TERMINAL and not _is_own(samples):
        times.append(completed_us)
    return max(min(times), scheduled_us)


def _is_own(samples: PodSamples) -> bool:
    """Whether a scrape showed the pod as terminal before its deletion was requested, or it never was."""
    seen = samples.sightings
    if samples.time_us(pod_samples.DELETION) is None:
        return True
    if seen is None or seen.terminal_us is None or seen.deleting_us is None:
        return False
    return seen.terminal_us < seen.deleting_us


def _result(samples: PodSamples) -> Result:
    """kube-state-metrics does not have the exit code of the last run; that of a pod that succeeded is 0."""
    reasons = [
        *samples.set_labels(pod_samples.REASON, "reason"),
        *(each for each in samples.set_labels(pod_samples.TERMINATED_REASON, "reason") if each != "Completed"),
        *samples.set_labels(pod_samples.DISRUPTION, "reason"),
    ]
    if samples.phase == "Succeeded":
        return Result("Succeeded", "", 0, _is_own(samples))
    return Result(samples.phase, next(iter(reasons), ""), None, _is_own(samples))

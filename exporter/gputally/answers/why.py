"""Answers why pods wait: finds those of a question among the pods that wait, hold GPUs, or are gone."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from gputally.accounting.fleet.pending_now import PendingNow, tenant_of
from gputally.accounting.waiting.snapshot import WaitingPod
from gputally.answers.past_answers import why_gone, why_waited, with_preempted
from gputally.answers.past_pods import PastPods
from gputally.answers.uncreated_workloads import pending_workload, workloads_named
from gputally.answers.viewer import Viewer
from gputally.answers.why_waiting import why_waiting
from gputally.model.api.why import UnaccountedNote, WhyDocument
from gputally.model.pod_record import PodRecord
from gputally.model.unaccounted import WORDS, UnaccountedEntry, UnaccountedPod
from gputally.model.units import GPU, to_datetime
from gputally.questions.why import Why

_MOST_HINTS: Final = 3
_MOST_WORKLOADS: Final = 10
_MOST_NOTES: Final = 10
"""In one document."""


class NoSuchPods(Exception):
    """No pod with GPUs matches, and no workload without pods, as far as the reader may know.

    The text says where else to look.
    """


class NotYetJudged(Exception):
    """The pods exist, and nobody has looked at why they wait yet; the text names them."""


class Found(NamedTuple):
    """The waiting pods, and the others, which have their GPUs or have ended."""

    waiting: Sequence[WaitingPod]
    others: Sequence[PodRecord]


def why_document(now: PendingNow, asked: Why, viewer: Viewer, *, past: PastPods) -> WhyDocument:
    """The answer, with the workloads of that name that lack pods. Raises: NoSuchPods, NotYetJudged."""
    uncreated = workloads_named(now, asked.namespace, asked.pod or asked.job, viewer)[:_MOST_WORKLOADS]
    workloads, notes = [pending_workload(now, each) for each in uncreated], unaccounted_notes(now, asked, viewer)
    from_us = past.records_from_us()
    others = WhyDocument(
        at=to_datetime(now.at_us),
        currency=now.currency,
        answers=[],
        unaccounted=notes,
        records_from=None if from_us is None else to_datetime(from_us),
    )
    others = with_preempted(others, now, asked, viewer, past=past)
    try:
        found = _pods_document(now, asked, viewer, past)
    except NoSuchPods as error:
        if not (workloads or notes or others.preempted):
            known = (
                f"; pods are known from {others.records_from:%Y-%m-%d %H:%M:%S} UTC on" if others.records_from else ""
            )
            raise NoSuchPods(f"{error}{known}") from None
        return replace(others, workloads=workloads)
    return replace(others, **_answered(found), workloads=workloads if asked.job else [])


def _answered(found: WhyDocument) -> dict[str, Any]:
    """The fields of the answer about pods."""
    names = ("answers", "bound", "nodes_used", "nodes_needed")
    return {name: getattr(found, name) for name in names}


def unaccounted_notes(now: PendingNow, asked: Why, viewer: Viewer) -> list[UnaccountedNote]:
    """The pods that were asked about whose GPUs are not accounted. Pods without a record have no job and no tenant."""
    found: list[UnaccountedNote] = []
    for uid, entries in now.unaccounted.items():
        record, pod = now.records.get(uid), now.unrecorded.get(uid)
        if record and (not _matches(record, asked) or not viewer.sees(tenant_of(now, record))):
            continue
        if not record and (pod is None or viewer.tenants is not None or not _is_named(pod, asked)):
            continue
        if named := record or pod:
            found += (_note(named, each, viewer) for each in entries)
    return sorted(found, key=lambda each: (each.namespace, each.pod))[:_MOST_NOTES]


def _is_named(pod: UnaccountedPod, asked: Why) -> bool:
    return bool(asked.pod) and pod.name == asked.pod and asked.namespace in ("", pod.namespace)


def _note(pod: PodRecord | UnaccountedPod, entry: UnaccountedEntry, viewer: Viewer) -> UnaccountedNote:
    return UnaccountedNote(
        namespace=pod.namespace,
        pod=pod.name,
        node=pod.node if viewer.sees_nodes else None,
        reason=entry.reason.value,
        text=WORDS[entry.reason],
        resources=list(entry.resources),
        gpus=None if entry.quantity is None else entry.quantity / GPU,
    )


def _pods_document(now: PendingNow, asked: Why, viewer: Viewer, past: PastPods) -> WhyDocument:
    """The answer about pods. Raises: NoSuchPods, NotYetJudged."""
    found = _found(now, asked, viewer)
    _expect_one_place(found, asked)
    if found.others and not found.waiting and all(map(_is_pending, found.others)):
        raise NotYetJudged(asked.subject)
    bound = [each for each in found.others if each.end_us is None and not _is_pending(each)] if asked.job else []
    return _with_nodes(_document(now, asked, viewer, found=found, past=past), bound, now)


def _document(now: PendingNow, asked: Why, viewer: Viewer, *, found: Found, past: PastPods) -> WhyDocument:
    if found.waiting:
        return why_waiting(now, found.waiting, viewer)
    if not found.others:
        return _gone(now, asked, viewer, past)
    latest = max(found.others, key=lambda each: (not _is_pending(each), each.created_us))
    waits, tenant = past.waits(latest.uid), tenant_of(now, latest)
    return why_waited(now, latest, viewer, tenant=tenant, waits=waits)


def _with_nodes(document: WhyDocument, bound: Sequence[PodRecord], now: PendingNow) -> WhyDocument:
    """With the number of pods of the job that have their GPUs, and of the nodes that they occupy."""
    jobs = {each.full_job for each in bound}
    nodes = now.packing.get(jobs.pop()) if len(jobs) == 1 else None
    if nodes is None:
        return replace(document, bound=len(bound))
    return replace(document, bound=len(bound), nodes_used=nodes.used, nodes_needed=nodes.needed)


def _expect_one_place(found: Found, asked: Why) -> None:
    """Raises: NoSuchPods if pods of several namespaces match."""
    places = sorted({each.namespace for each in (*(each.record for each in found.waiting), *found.others)})
    if len(places) > 1:
        named = " or ".join(f"{place}/{asked.pod}" for place in places[:_MOST_HINTS])
        raise NoSuchPods(f"pods of {len(places)} namespaces are named {asked.pod}; use {named}")


def _found(now: PendingNow, asked: Why, viewer: Viewer) -> Found:
    waiting = [each for each in now.waiting if _matches(each.record, asked) and viewer.sees(each.tenant)]
    uids = {each.record.uid for each in waiting}
    others = [
        each
        for each in now.records.values()
        if _matches(each, asked) and each.uid not in uids and viewer.sees(tenant_of(now, each))
    ]
    return Found(waiting, others)


def _gone(now: PendingNow, asked: Why, viewer: Viewer, past: PastPods) -> WhyDocument:
    """The answer about a pod that only the ledger knows. Raises: NoSuchPods."""
    gone = past.last_named(asked.namespace, asked.pod) if asked.namespace and asked.pod else None
    if gone and viewer.sees(gone.tenant):
        return why_gone(now, gone, viewer)
    raise NoSuchPods(_unknown(now, asked, viewer))


def _is_pending(record: PodRecord) -> bool:
    return record.scheduled_us is None and record.end_us is None


def _matches(record: PodRecord, asked: Why) -> bool:
    if asked.namespace and record.namespace != asked.namespace:
        return False
    return record.name == asked.pod if asked.pod else record.job == asked.job


def _unknown(now: PendingNow, asked: Why, viewer: Viewer) -> str:
    """Say that there is no such pod, with pods of that name, or similar ones, elsewhere."""
    seen = [each.record for each in now.waiting if viewer.sees(each.tenant)]
    seen += [each for each in now.records.values() if viewer.sees(tenant_of(now, each))]
    name = asked.pod or asked.job
    namesakes = [each for each in seen if (each.name if asked.pod else each.job) == name]
    similar = [each for each in seen if each.namespace == asked.namespace and each.name.startswith(name)]
    hints = list(dict.fromkeys(f"{each.namespace}/{each.name}" for each in (*namesakes, *similar)))[:_MOST_HINTS]
    hint = f"did you mean {' or '.join(hints)}?" if hints else "check the name, and that it requests GPUs"
    return f"no pod with GPUs is known as {asked.subject}; {hint}"

"""Planned pods as admission would store them."""

from typing import Final, NamedTuple

from msgspec.structs import replace

from gputally.accounting.terms.tier import tier_labels, tier_of
from gputally.errors import MalformedObject
from gputally.model.advice import PriorityChoice
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.pods import NEVER
from gputally.model.needs import Needs
from gputally.pending_api.forecasts.manifest_pods import PlannedPods
from gputally.pending_api.occupants import Rank
from gputally.pending_api.pending_now import PendingNow, Viewer, tenant_of
from gputally.placement.needs import needs_of
from gputally.report_api.report_request import InvalidRequest
from gputally.shares.request import effective_units
from gputally.shares.schemes import covered

_OF_SYSTEM: Final = (
    PriorityChoice("system-cluster-critical", 2_000_000_000),
    PriorityChoice("system-node-critical", 2_000_001_000),
)
"""Exist in every cluster. Source: kubernetes pkg/apis/scheduling/types.go, v1/helpers.go."""


class NoGpus(InvalidRequest):
    """None of the pods requests a GPU."""


class Candidate(NamedTuple):
    """Planned pods with what each of them needs."""

    planned: PlannedPods
    pod: PlaceablePod
    needs: Needs
    quantity: int
    """µGPU of each."""

    @property
    def rank(self) -> Rank:
        """Whom they may preempt."""
        return Rank(self.needs.priority, self.needs.may_preempt, self.needs.class_name)


def candidates_of(now: PendingNow, planned: list[PlannedPods], viewer: Viewer) -> list[Candidate]:
    """Those with GPUs, as admission would store them.

    Raises: InvalidRequest for a class that does not exist, an invalid request, or pods without GPUs; it names no class
    that the reader may not know.
    """
    with_gpus = [each for each in planned if _candidate(each, each.pod, now).needs.gpus]
    if not with_gpus:
        raise NoGpus("these pods request no GPU; gputally says where pods with GPUs fit")
    return [_candidate(each, _admitted(each, now, viewer), now) for each in with_gpus]


def tier_of_candidate(candidate: Candidate, now: PendingNow) -> str:
    """The tier that the pods would have."""
    keys, labels = tier_labels(now.rules), candidate.pod.metadata.labels or {}
    chosen = tuple((key, value) for key, value in labels.items() if key in keys)
    return tier_of(candidate.needs.class_name, candidate.needs.priority, now.rules, chosen)


def shown_priority(candidate: Candidate, now: PendingNow, viewer: Viewer) -> int | None:
    """The priority of the pods; None if it is that of a class whose value the reader may not know."""
    needs = candidate.needs
    if not needs.class_name or (needs.class_name, needs.priority) in _known_values(now, viewer):
        return needs.priority
    return None


def _known_values(now: PendingNow, viewer: Viewer) -> frozenset[tuple[str, int]]:
    """The classes with the values that the reader may know: those of pods of its tenants, and those of the system."""
    classes = [*now.classes, *_OF_SYSTEM] if viewer.tenants is None else _OF_SYSTEM
    theirs = [each for each in now.records.values() if viewer.tenants and viewer.sees(tenant_of(now, each))]
    return frozenset(
        [*((each.name, each.value) for each in classes), *((each.class_name, each.priority or 0) for each in theirs)]
    )


def _candidate(planned: PlannedPods, pod: PlaceablePod, now: PendingNow) -> Candidate:
    """What the planned pods need if they are created as `pod`. Raises: InvalidRequest."""
    try:
        needs, quantity = needs_of(pod, now.rules), covered(effective_units(pod, now.rules), (), now.rules)
    except MalformedObject as error:
        raise InvalidRequest(f"{planned.name or 'the pod'}: {str(error).partition(': ')[2]}") from None
    return Candidate(planned, pod, needs, quantity)


def _admitted(planned: PlannedPods, now: PendingNow, viewer: Viewer) -> PlaceablePod:
    """The pod with what admission writes: its class, the priority and the policy. Raises: InvalidRequest.

    Without a class the priority is 0: the server accepts no other from the pod's creator.
    """
    spec = planned.pod.spec
    name = spec.priority_class_name or now.default_class
    if not name:
        return replace(planned.pod, spec=replace(spec, priority=0))
    known = next((each for each in (*now.classes, *_OF_SYSTEM) if each.name == name), None)
    if known is None:
        where = f"{planned.name}: " if planned.name else ""
        raise InvalidRequest(f"{where}PriorityClass '{name[:60]}' does not exist; {_existing(now, viewer)}")
    policy = spec.preemption_policy or (None if known.may_preempt else NEVER)
    admitted = replace(spec, priority_class_name=name, priority=known.value, preemption_policy=policy)
    return replace(planned.pod, spec=admitted)


def _existing(now: PendingNow, viewer: Viewer) -> str:
    if viewer.tenants is None:
        return f"there are {', '.join(each.name for each in now.classes) or 'none known'}"
    known = {name for name, _ in _known_values(now, viewer)}
    theirs = [each.name for each in now.classes if each.name in known]
    ignored = "PriorityClasses in the file are ignored for users restricted to tenants"
    return f"your pods have {', '.join(theirs) or 'none'}; {ignored}"

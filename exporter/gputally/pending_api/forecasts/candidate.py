"""Planned pods as admission would store them."""

from typing import Final, NamedTuple

from msgspec.structs import replace

from gputally.accounting.terms.tier import tier_labels, tier_of
from gputally.errors import MalformedObject
from gputally.model.objects.core_values import NEVER
from gputally.model.objects.placeable_pod import PlaceablePod
from gputally.model.placement.advice import PriorityChoice
from gputally.model.placement.needs import Needs
from gputally.pending_api.forecasts.manifest_pods import PlannedPods
from gputally.pending_api.occupants import Rank
from gputally.pending_api.pending_now import PendingNow
from gputally.placement.objects.needs_of import needs_of
from gputally.report_api.report_request import InvalidRequest
from gputally.shares.request import effective_units
from gputally.shares.schemes import covered

_OF_SYSTEM: Final = (
    PriorityChoice("system-cluster-critical", 2_000_000_000),
    PriorityChoice("system-node-critical", 2_000_001_000),
)
"""Exist in every cluster. Source: kubernetes pkg/apis/scheduling/types.go, v1/helpers.go."""


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


def candidates_of(now: PendingNow, planned: list[PlannedPods]) -> list[Candidate]:
    """Those with GPUs, as admission would store them.

    Raises: InvalidRequest for a class that does not exist, an invalid request, or pods without GPUs.
    """
    with_gpus = [each for each in planned if _candidate(each, each.pod, now).needs.gpus]
    if not with_gpus:
        raise InvalidRequest("these pods request no GPU; gputally says where pods with GPUs fit")
    return [_candidate(each, _admitted(each, now), now) for each in with_gpus]


def tier_of_candidate(candidate: Candidate, now: PendingNow) -> str:
    """The tier that the pods would have."""
    keys, labels = tier_labels(now.rules), candidate.pod.metadata.labels or {}
    chosen = tuple((key, value) for key, value in labels.items() if key in keys)
    return tier_of(candidate.needs.class_name, candidate.needs.priority, now.rules, chosen)


def _candidate(planned: PlannedPods, pod: PlaceablePod, now: PendingNow) -> Candidate:
    """What the planned pods need if they are created as `pod`. Raises: InvalidRequest."""
    try:
        needs, quantity = needs_of(pod, now.rules), covered(effective_units(pod, now.rules), (), now.rules)
    except MalformedObject as error:
        raise InvalidRequest(f"{planned.name or 'the pod'}: {str(error).partition(': ')[2]}") from None
    return Candidate(planned, pod, needs, quantity)


def _admitted(planned: PlannedPods, now: PendingNow) -> PlaceablePod:
    """The pod with what admission writes: its class, the priority and the policy. Raises: InvalidRequest."""
    spec = planned.pod.spec
    name = spec.priority_class_name or now.default_class
    if not name:
        return planned.pod
    known = next((each for each in (*now.classes, *_OF_SYSTEM) if each.name == name), None)
    if known is None:
        names = ", ".join(each.name for each in now.classes) or "none known"
        where = f"{planned.name}: " if planned.name else ""
        raise InvalidRequest(f"{where}PriorityClass '{name[:60]}' does not exist; there are {names}")
    policy = spec.preemption_policy or (None if known.may_preempt else NEVER)
    admitted = replace(spec, priority_class_name=name, priority=known.value, preemption_policy=policy)
    return replace(planned.pod, spec=admitted)

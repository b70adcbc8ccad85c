"""Forecasts of pods, one kind after the other."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from msgspec.structs import replace

from gputally.accounting.terms.serving_tiers import serves
from gputally.accounting.terms.tier import tier_labels, tier_of
from gputally.errors import MalformedObject
from gputally.model.objects.core_values import NEVER
from gputally.model.objects.placeable_pod import PlaceablePod
from gputally.model.placement.advice import PriorityChoice, WhatIf
from gputally.model.placement.needs import Needs
from gputally.model.placement.situation import Situation
from gputally.model.placement.verdict import Eviction, Reason
from gputally.model.placement.what_if_document import PodForecast, WhatIfDocument
from gputally.model.placement.why_document import OccupantPod
from gputally.model.units import GPU, to_datetime
from gputally.pending_api.forecasts.manifest_pods import PlannedPods
from gputally.pending_api.occupants import PLANNED, Rank, decimal_text, is_planned, limited, occupants
from gputally.pending_api.others_waiting import others_waiting
from gputally.pending_api.pending_now import PendingNow, Viewer
from gputally.pending_api.pending_pods import shown_verdict
from gputally.pending_api.why_answers import helps_of, needed, obstacle_texts
from gputally.pending_api.words.verdict_words import sentence
from gputally.placement.objects.needs_of import needs_of
from gputally.placement.room import Room
from gputally.placement.what_if import place, what_if
from gputally.report_api.report_request import InvalidRequest
from gputally.shares.request import effective_units
from gputally.shares.schemes import covered

_NOWHERE: Final = Situation()
_OF_SYSTEM: Final = (
    PriorityChoice("system-cluster-critical", 2_000_000_000),
    PriorityChoice("system-node-critical", 2_000_001_000),
)
"""Exist in every cluster. Source: kubernetes pkg/apis/scheduling/types.go, v1/helpers.go."""
MOST_EVALUATED: Final = 1_000
"""Pods of all kinds of one request that find a place; where further ones fit is not evaluated."""


class _Candidate(NamedTuple):
    planned: PlannedPods
    pod: PlaceablePod
    needs: Needs
    quantity: int
    """µGPU of each."""

    @property
    def rank(self) -> Rank:
        return Rank(self.needs.priority, self.needs.may_preempt, self.needs.class_name)


def forecast(
    now: PendingNow, planned: Sequence[PlannedPods], viewer: Viewer, *, classes: Sequence[PriorityChoice] = ()
) -> WhatIfDocument:
    """The forecasts of all pods, in order: each takes its place before the next. Changes `now.room`.

    `classes` are PriorityClasses that would be created with them.

    Raises: InvalidRequest for a class that does not exist, an invalid request, or pods without GPUs.
    """
    now = now._replace(classes=list({each.name: each for each in (*now.classes, *classes)}.values()))
    with_gpus = [each for each in planned if _candidate(each, each.pod, now).needs.gpus]
    candidates = [_candidate(each, _admitted(each, now), now) for each in with_gpus]
    if not candidates:
        raise InvalidRequest("these pods request no GPU; gputally says where pods with GPUs fit")
    found: list[PodForecast] = []
    left = MOST_EVALUATED
    for index, each in enumerate(candidates):
        result = _tried(each.needs, now.room, min(each.planned.number, left))
        left -= result.fitting + len(result.evictions)
        place(result, each.needs, now.room, key=f"{PLANNED}{index}/")
        found.append(_forecast(now, each, result, viewer))
    victims = [victim for each in found for victim in each.victims]
    is_known = all(victim.pod for victim in victims if victim.tier)
    return WhatIfDocument(
        at=to_datetime(now.at_us),
        currency=now.currency,
        forecasts=found,
        lost_gpu_hours=sum(each.lost_gpu_hours or 0 for each in victims) if is_known else None,
        lost_cost=_lost_cost(victims) if is_known and now.currency else None,
        is_lost_upper_bound=is_known and any(each.is_lost_upper_bound for each in victims),
    )


def _candidate(planned: PlannedPods, pod: PlaceablePod, now: PendingNow) -> _Candidate:
    """What the planned pods need if they are created as `pod`. Raises: InvalidRequest."""
    try:
        needs, quantity = needs_of(pod, now.rules), covered(effective_units(pod, now.rules), (), now.rules)
    except MalformedObject as error:
        raise InvalidRequest(f"{planned.name or 'the pod'}: {str(error).partition(': ')[2]}") from None
    return _Candidate(planned, pod, needs, quantity)


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


def _tried(needs: Needs, room: Room, count: int) -> WhatIf:
    """The forecast of so many pods, without a verdict if only the bound on evictions has ended it."""
    found = what_if(needs, room, count=count) if count else WhatIf(fitting=0)
    is_cut = found.verdict is not None and found.verdict.reason is Reason.PREEMPTING
    return replace(found, verdict=None) if is_cut else found


def _forecast(now: PendingNow, candidate: _Candidate, result: WhatIf, viewer: Viewer) -> PodForecast:
    """The pods that were bound have their places in `now.room`. If one waits, so do all after it."""
    bound = result.fitting + len(result.evictions)
    planned, needs = candidate.planned, candidate.needs
    verdict = shown_verdict(result.verdict, viewer) if result.verdict else None
    named = [uid for each in verdict.obstacles for uid in each.pods if not is_planned(uid)] if verdict else []
    tier = _tier(candidate, now)
    situation = replace(_NOWHERE, is_serving=serves(tier, now.rules))
    return PodForecast(
        name=planned.name,
        pods=planned.number,
        gpus=candidate.quantity / GPU,
        tier=tier,
        class_name=needs.class_name,
        priority=needs.priority,
        may_preempt=needs.may_preempt,
        needs=needed(needs),
        bound=bound,
        others_waiting=others_waiting(now, needs, viewer),
        not_evaluated=0 if verdict else planned.number - bound,
        nodes=list(_nodes(result)) if viewer.sees_nodes else None,
        victims=occupants(now, _evicted(result.evictions), candidate.rank, viewer),
        reason=verdict.reason.value if verdict else "",
        text=sentence(verdict, needs, _NOWHERE) if verdict else "",
        obstacles=obstacle_texts(verdict, viewer) if verdict else [],
        occupants=limited(occupants(now, named, candidate.rank, viewer))[0],
        helps=helps_of(now, result.verdict, needs, situation, rank=candidate.rank, viewer=viewer),
    )


def _tier(candidate: _Candidate, now: PendingNow) -> str:
    keys, labels = tier_labels(now.rules), candidate.pod.metadata.labels or {}
    chosen = tuple((key, value) for key, value in labels.items() if key in keys)
    return tier_of(candidate.needs.class_name, candidate.needs.priority, now.rules, chosen)


def _nodes(result: WhatIf) -> Iterator[str]:
    """Where the first pod fits, and where pods are evicted for others."""
    yield from dict.fromkeys((*result.nodes, *(each.node for each in result.evictions)))


def _evicted(evictions: Sequence[Eviction]) -> list[str]:
    return [uid for each in evictions for uid in each.victims]


def _lost_cost(victims: Sequence[OccupantPod]) -> str | None:
    priced = [Decimal(each.lost_cost) for each in victims if each.lost_cost is not None]
    return decimal_text(sum(priced, Decimal(0))) if priced or not victims else None

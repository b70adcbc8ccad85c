"""Forecasts of planned pods, as admission would store them, one kind after the other."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from msgspec.structs import replace

from gputally.accounting.fleet.pending_now import PendingNow, not_considered, tenant_of
from gputally.accounting.terms.tier import serves, tier_labels, tier_of
from gputally.answers.answer_words import quota_refusal
from gputally.answers.competing_pods import QueueSimulation, others_waiting, queue_simulation
from gputally.answers.helps import RelatedPods, deadlocked, helps_of
from gputally.answers.occupants import Rank, decimal_text, limited, occupants
from gputally.answers.parameters import InvalidRequest
from gputally.answers.pending_pods import shown_verdict
from gputally.answers.planned_pods import PlannedPods, not_modelled, planned_classes, planned_pods
from gputally.answers.verdict_words import sentence
from gputally.answers.viewer import Viewer
from gputally.answers.why_waiting import needed, obstacle_texts, shown_obstacles
from gputally.errors import MalformedObject
from gputally.model.advice import PriorityChoice, WhatIf
from gputally.model.api.what_if import AfterWaiting, PodForecast, WhatIfDocument
from gputally.model.api.why import OccupantPod
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.pods import NEVER
from gputally.model.needs import Needs, Situation
from gputally.model.units import GPU, to_datetime
from gputally.model.verdicts import Eviction, Reason, Verdict
from gputally.placement.needs import needs_of
from gputally.placement.quotas import Admission, PodQuotas, counted_pod, usage_of
from gputally.placement.room import PLANNED, Room, is_planned
from gputally.placement.verdicts import judged
from gputally.placement.what_if import place, what_if
from gputally.shares.request import effective_units
from gputally.shares.schemes import covered

_OF_SYSTEM: Final = (
    PriorityChoice("system-cluster-critical", 2_000_000_000),
    PriorityChoice("system-node-critical", 2_000_001_000),
)
"""Exist in every cluster. Source: kubernetes pkg/apis/scheduling/types.go, v1/helpers.go."""
MOST_EVALUATED: Final = 1_000
"""Pods of all kinds of one request that find a place; where further ones fit is not evaluated."""
_BY_PODS: Final = (Reason.CAPACITY, Reason.INVERSION)


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
    """The planned pods with GPUs, as admission would store them.

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


class _Outcome(NamedTuple):
    """The result for the pods that quotas admit, and what refuses the others."""

    admission: Admission
    found: WhatIf

    @property
    def bound(self) -> int:
        return self.found.fitting + len(self.found.evictions)


def forecast(
    now: PendingNow, planned: Sequence[PlannedPods], viewer: Viewer, *, classes: Sequence[PriorityChoice] = ()
) -> WhatIfDocument:
    """The forecasts of all pods, in order: each takes its place before the next. Changes `now.room`.

    `classes` are PriorityClasses that would be created with them; not for restricted readers, who could find out the
    priority of others' pods by trying values.

    Raises: InvalidRequest for a class that does not exist, an invalid request, or pods without GPUs.
    """
    if viewer.tenants is None:
        now = now._replace(classes=list({each.name: each for each in (*now.classes, *classes)}.values()))
    candidates = candidates_of(now, list(planned), viewer)
    quotas = PodQuotas(each for each in now.policy.quotas if viewer.sees(now.policy.tenants[each.namespace]))
    first = queue_simulation(now, viewer, least=min(each.needs.priority for each in candidates))
    found: list[PodForecast] = []
    left = MOST_EVALUATED
    for index, each in enumerate(candidates):
        result = _result(each, now.room, quotas, left)
        left -= result.bound
        place(result.found, each.needs, now.room, key=f"{PLANNED}{index}/")
        after = _after_waiting(each, first, result, key=f"{PLANNED}{index}/") if first else None
        found.append(_forecast(now, each, result, viewer, after))
    return _document(now, found)


def forecast_of_manifest(now: PendingNow, body: bytes, viewer: Viewer) -> WhatIfDocument:
    """The forecast of the pods of a manifest as JSON, with the objects whose pods are not known. Changes `now.room`.

    Raises: InvalidRequest, see `forecast`.
    """
    planned, others = planned_pods(body), not_modelled(body, now.rules)
    try:
        found = forecast(now, planned, viewer, classes=planned_classes(body))
    except NoGpus as error:
        named = f"; the pods of {', '.join(others)} are not modelled" if others else ""
        raise InvalidRequest(f"{error}{named}") from None
    return replace(found, not_modelled=others)


def _document(now: PendingNow, found: list[PodForecast]) -> WhatIfDocument:
    victims = [victim for each in found for victim in each.victims]
    is_known = all(victim.pod for victim in victims if victim.tier)
    return WhatIfDocument(
        at=to_datetime(now.at_us),
        currency=now.currency,
        forecasts=found,
        lost_gpu_hours=sum(each.lost_gpu_hours or 0 for each in victims) if is_known else None,
        lost_cost=_lost_cost(victims) if is_known and now.currency else None,
        is_lost_upper_bound=is_known and any(each.is_lost_upper_bound for each in victims),
        not_considered=not_considered(now.policy, now.room.budgets),
    )


def _result(candidate: Candidate, room: Room, quotas: PodQuotas, left: int) -> _Outcome:
    """The result for the pods, of which at most `left` are evaluated. Raises: InvalidRequest."""
    planned, pod, needs = candidate.planned, candidate.pod, candidate.needs
    try:
        usage = usage_of(pod)
    except MalformedObject as error:
        raise InvalidRequest(f"{planned.name or 'the pod'}: {str(error).partition(': ')[2]}") from None
    admission = quotas.admit(pod.metadata.namespace, counted_pod(pod), usage, planned.number)
    found = _tried(needs, room, min(admission.number, left))
    if found.verdict is None and admission.refusal and admission.number <= left:
        refused = judged(needs, room, Situation(quota=admission.refusal))
        found = replace(found, verdict=refused)
    return _Outcome(admission, found)


def _tried(needs: Needs, room: Room, count: int) -> WhatIf:
    """The forecast of so many pods, without a verdict if only the bound on evictions has ended it."""
    found = what_if(needs, room, count=count) if count else WhatIf(fitting=0)
    is_cut = found.verdict is not None and found.verdict.reason is Reason.PREEMPTING
    return replace(found, verdict=None) if is_cut else found


def _after_waiting(candidate: Candidate, first: QueueSimulation, now: _Outcome, *, key: str) -> AfterWaiting:
    """The result for the pods if the waiting pods that precede them are placed first."""
    first.place_before(candidate.needs)
    found = _tried(candidate.needs, first.room, now.bound)
    place(found, candidate.needs, first.room, key=key)
    return AfterWaiting(
        placed=first.placed(candidate.needs),
        is_complete=first.is_complete,
        bound=found.fitting + len(found.evictions),
        reason=found.verdict.reason.value if found.verdict else "",
    )


def _forecast(
    now: PendingNow, candidate: Candidate, result: _Outcome, viewer: Viewer, after: AfterWaiting | None
) -> PodForecast:
    """The pods that were bound have their places in `now.room`. If one waits, so do all after it."""
    planned, needs, found = candidate.planned, candidate.needs, result.found
    tier = tier_of_candidate(candidate, now)
    refused = planned.number - result.admission.number
    situation = Situation(is_serving=serves(tier, now.rules))
    if found.verdict and result.bound == result.admission.number:
        situation = replace(situation, quota=result.admission.refusal)
    verdict = shown_verdict(found.verdict, viewer) if found.verdict else None
    named = [uid for each in shown_obstacles(verdict) for uid in each.pods if not is_planned(uid)] if verdict else []
    related = RelatedPods(stuck=deadlocked(now))
    waiting = result.admission.number - result.bound or refused or 1
    return PodForecast(
        name=planned.name,
        pods=planned.number,
        gpus=candidate.quantity / GPU,
        tier=tier,
        class_name=needs.class_name,
        priority=shown_priority(candidate, now, viewer),
        may_preempt=needs.may_preempt,
        needs=needed(needs),
        bound=result.bound,
        refused=refused,
        quota=quota_refusal(result.admission.refusal),
        others_waiting=others_waiting(now, needs, viewer),
        after_waiting=after,
        not_evaluated=0 if verdict else result.admission.number - result.bound,
        nodes=list(_nodes(found)) if viewer.sees_nodes else None,
        victims=_victims(now, candidate, found.evictions, viewer),
        reason=verdict.reason.value if verdict else "",
        text=_text(verdict, needs, situation) if verdict else "",
        obstacles=obstacle_texts(_without_planned(verdict), viewer) if verdict else [],
        occupants=limited(occupants(now, named, candidate.rank, viewer))[0],
        helps=helps_of(
            *(now, found.verdict, needs, situation), rank=candidate.rank, viewer=viewer, related=related, pods=waiting
        ),
    )


def _victims(now: PendingNow, candidate: Candidate, evictions: Sequence[Eviction], viewer: Viewer) -> list[OccupantPod]:
    """The pods that would be preempted, with the budgets that do not allow that."""
    uids = [uid for each in evictions for uid in each.victims]
    budgets = dict(pair for each in evictions for pair in each.violating)
    found = occupants(now, uids, candidate.rank, viewer)
    return [replace(each, budget=budgets[each.uid]) if each.uid in budgets else each for each in found]


def _text(verdict: Verdict, needs: Needs, situation: Situation) -> str:
    """Why the next pod waits; not because of pods that do not exist, if others suffice to explain it."""
    text = sentence(verdict, needs, situation)
    if not any(map(is_planned, (uid for each in verdict.obstacles for uid in each.pods))):
        return text
    if verdict.reason in _BY_PODS:
        return "the pods of this request before it take what fits"
    return f"{text}, beside the pods of this request before it"


def _without_planned(verdict: Verdict) -> Verdict:
    """Without what pods of the request hold."""
    return replace(
        verdict, obstacles=tuple([each for each in verdict.obstacles if not any(map(is_planned, each.pods))])
    )


def _nodes(result: WhatIf) -> Iterator[str]:
    """Where the first pod fits, and where pods are evicted for others."""
    yield from dict.fromkeys((*result.nodes, *(each.node for each in result.evictions)))


def _lost_cost(victims: Sequence[OccupantPod]) -> str | None:
    priced = [Decimal(each.lost_cost) for each in victims if each.lost_cost is not None]
    return decimal_text(sum(priced, Decimal(0))) if priced or not victims else None

"""Why a pod, or the pods of a job, wait, and how long others like them waited."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from gputally.accounting.fleet.pending_now import PendingNow
from gputally.accounting.terms.tier import tier_of_pod
from gputally.accounting.waiting.snapshot import WaitingPod
from gputally.answers.competing_pods import NOT_ADMITTED, may_be_next, others_waiting
from gputally.answers.helps import Relations, helps_of
from gputally.answers.occupants import Rank, gang_entry_of, limited, occupants
from gputally.answers.past_answers import past_waits
from gputally.answers.pending_pods import pending_pod
from gputally.answers.priority_findings import priority_note
from gputally.answers.verdict_words import NODE_COUNTS, obstacle_text
from gputally.answers.viewer import Viewer
from gputally.answers.wait_costs import unpriced, waited_cost
from gputally.model.api.pending import PendingPod
from gputally.model.api.why import (
    Help,
    NeededResources,
    ObstacleText,
    PriorityNote,
    SimilarWaits,
    WhyAnswer,
    WhyDocument,
)
from gputally.model.kube.pods import NodeSelectorTerm
from gputally.model.needs import Needs
from gputally.model.pod_record import PodRecord
from gputally.model.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from gputally.model.units import GPU, US_PER_SECOND, to_datetime
from gputally.model.verdicts import FindingKind, Obstacle, ObstacleKind, Reason, Verdict
from gputally.placement.priority_findings import findings
from gputally.placement.taints_and_affinity import NO_REQUIREMENT, describe
from gputally.shares.schemes import Units, requested

_LATEST: Final = 100
"""So many of the latest pods count."""
_MOST_LETTERS: Final = 300
"""Anyone may write thousands of terms."""
_NOT_BY_NODES: Final = frozenset(NOT_ADMITTED | {Reason.CLAIM, Reason.EXCLUDED, Reason.IMPOSSIBLE, Reason.SCHEDULABLE})
"""More nodes like those that exist leave these pods waiting."""
_MOST_ANSWERS: Final = 10
"""In one document: pods of a job have few verdicts."""


def similar_waits(now: PendingNow, viewer: Viewer, *, tier: str, units: Units) -> SimilarWaits | None:
    """The waits of the pods of this tier and request that were bound last; None without any.

    Pods that exist are known, and of those that are gone the ones that were bound last; only pods that the reader may
    know count.
    """
    quantity = requested(units, now.rules)
    known = {**dict(_gone(now, viewer, tier, quantity)), **dict(_present(now, viewer, tier, units))}
    latest = sorted(known.values())[-_LATEST:]
    if not latest:
        return None
    waits = sorted(waited_us for _, waited_us in latest)
    return SimilarWaits(
        tier=tier,
        gpus=quantity / GPU,
        pods=len(waits),
        median_seconds=_quantile(waits, 50) / US_PER_SECOND,
        p90_seconds=_quantile(waits, 90) / US_PER_SECOND,
        since=to_datetime(latest[0][0]),
    )


def _present(now: PendingNow, viewer: Viewer, tier: str, units: Units) -> Iterator[tuple[str, tuple[int, int]]]:
    """When each pod was bound, and how long it had waited (µs), by UID."""
    for uid, record in now.records.items():
        if record.units != units or record.scheduled_us is None or not record.terms:
            continue
        if viewer.sees(record.terms[-1].tenant) and tier_of_pod(record, now.rules) == tier:
            yield uid, (record.scheduled_us, max(0, record.scheduled_us - record.created_us))


def _gone(now: PendingNow, viewer: Viewer, tier: str, quantity: int) -> Iterator[tuple[str, tuple[int, int]]]:
    for each in now.finished:
        first, last = each.waits[0], each.waits[-1]
        if last.to_us is None or (last.tier, last.quantity) != (tier, quantity):
            continue
        if viewer.sees(last.tenant):
            yield each.uid, (last.to_us, last.to_us - first.from_us)


def _quantile(ascending: list[int], percent: int) -> int:
    """The smallest value that at least so many percent of all do not exceed."""
    return ascending[max(0, -(-len(ascending) * percent // 100) - 1)]


def affinity_words(terms: Sequence[NodeSelectorTerm] | None) -> str:
    """`pool in (a, b), !spot or zone in (z1)`; "" for none. Longer ones are cut off."""
    found = ""
    for each in terms or ():
        found += f"{' or ' if found else ''}{_term(each)}"
        if len(found) > _MOST_LETTERS:
            return f"{found[:_MOST_LETTERS]}..."
    return found if terms is None or found else NO_REQUIREMENT


def _term(term: NodeSelectorTerm) -> str:
    requirements = (*(term.match_expressions or ()), *(term.match_fields or ()))
    return ", ".join(map(describe, requirements)) or NO_REQUIREMENT


def why_waiting(now: PendingNow, found: Sequence[WaitingPod], viewer: Viewer) -> WhyDocument:
    """One answer for each request and verdict of these pods, about the oldest pod."""
    alike: dict[tuple[Needs | None, Verdict], list[WaitingPod]] = {}
    for each in found:
        alike.setdefault((each.needs, each.verdict), []).append(each)
    relations = Relations(now, found)
    answers = [_answer(now, pods, viewer, relations) for pods in islice(alike.values(), _MOST_ANSWERS)]
    return WhyDocument(at=to_datetime(now.at_us), currency=now.currency, answers=answers)


def _answer(now: PendingNow, alike: Sequence[WaitingPod], viewer: Viewer, relations: Relations) -> WhyAnswer:
    waiting, pods = alike[0], len(alike)
    record, verdict, rank = waiting.record, waiting.verdict, rank_of(waiting.record)
    named = (uid for obstacle in shown_obstacles(verdict) for uid in obstacle.pods)
    shown, more = limited(occupants(now, (*verdict.victims, *named), rank, viewer))
    related = relations.of(waiting)
    cost = waited_cost((each.waits for each in alike), now.at_us)
    helps = helps_of(
        now, verdict, waiting.needs, waiting.situation, rank=rank, viewer=viewer, related=related, pods=pods
    )
    return WhyAnswer(
        state="pending",
        pod=_priced(now, waiting, viewer),
        pods=pods,
        needs=needed(waiting.needs) if waiting.needs else None,
        obstacles=obstacle_texts(verdict, viewer),
        nodes=node_counts(verdict),
        occupants=shown,
        more_occupants=more,
        priorities=_priorities(now, waiting, viewer),
        waits=past_waits(waiting.waits, now.at_us),
        waited_seconds=(now.at_us - waiting.since_us) / US_PER_SECOND,
        waited_cost=cost.lowest,
        highest_waited_cost=cost.highest,
        similar=similar_waits(now, viewer, tier=waiting.tier, units=record.units),
        others_waiting=_others(now, waiting, viewer, pods=pods),
        helps=helps,
        more_nodes_help=_more_nodes_help(verdict, helps),
        scheduler_message=waiting.situation.text,
        gang=gang_entry_of(now, record.uid, viewer),
    )


def _more_nodes_help(verdict: Verdict, helps: Sequence[Help]) -> bool | None:
    if any(each.adds_node for each in helps):
        return True
    return False if verdict.reason in _NOT_BY_NODES else None


def _priced(now: PendingNow, waiting: WaitingPod, viewer: Viewer) -> PendingPod:
    found = unpriced(now, waiting)
    return replace(pending_pod(now, waiting, viewer), unpriced=found.reason, cost_range=found.cost_range)


def _others(now: PendingNow, waiting: WaitingPod, viewer: Viewer, *, pods: int) -> int:
    """How many pods it competes with, besides the `pods` of the same answer."""
    if waiting.needs is None:
        return 0
    return others_waiting(now, waiting.needs, viewer) - (pods if may_be_next(waiting) else 0)


def _priorities(now: PendingNow, waiting: WaitingPod, viewer: Viewer) -> list[PriorityNote]:
    """What is wrong with the order of priorities; pods that got GPUs after it began to wait are named as such alone."""
    if waiting.needs is None:
        return []
    found = findings(waiting.needs, now.room, waiting.verdict, since_us=waiting.since_us)
    is_starved = any(each.kind is FindingKind.STARVATION for each in found)
    shown = (each for each in found if not (is_starved and each.kind is FindingKind.OUTRANKED))
    return [priority_note(each, now, viewer) for each in shown]


def rank_of(record: PodRecord) -> Rank:
    """Whom the pod may preempt."""
    return Rank(record.priority or 0, record.may_preempt, record.class_name)


def needed(needs: Needs) -> NeededResources:
    """The request in units of people."""
    amounts = dict(needs.amounts)
    cpu, memory, storage = (amounts.pop(name, 0) for name in (CPU, MEMORY, EPHEMERAL_STORAGE))
    amounts.pop(PODS, None)
    return NeededResources(
        devices=amounts,
        cpu_cores=cpu / 1000,
        memory_bytes=memory,
        ephemeral_storage_bytes=storage,
        node_selector=dict(needs.node_selector),
        node_affinity=affinity_words(needs.node_terms),
        tolerations=[_toleration(each.key, each.operator, each.value, each.effect) for each in needs.tolerations],
        scheduler=needs.scheduler,
    )


def obstacle_texts(verdict: Verdict, viewer: Viewer) -> list[ObstacleText]:
    """The obstacles in words; nodes only for readers who may know them."""
    return [
        ObstacleText(
            kind=each.kind.value,
            text=obstacle_text(each, shows_node=viewer.sees_nodes),
            node=each.node if viewer.sees_nodes else None,
        )
        for each in shown_obstacles(verdict)
    ]


def shown_obstacles(verdict: Verdict) -> Sequence[Obstacle]:
    """Without pods on a node that is too small: nobody would be bound there if they left."""
    if verdict.reason is not Reason.IMPOSSIBLE:
        return verdict.obstacles
    return [each for each in verdict.obstacles if each.kind is not ObstacleKind.RESOURCE]


def node_counts(verdict: Verdict) -> dict[str, int]:
    """How many nodes with GPUs what keeps it away from."""
    return {NODE_COUNTS.get(kind, kind.value): count for kind, count in verdict.counts}


def _toleration(key: str, operator: str, value: str, effect: str) -> str:
    what = key if operator == "Exists" or not value else f"{key}={value}"
    return f"{what or 'any'}:{effect}" if effect else what or "any"

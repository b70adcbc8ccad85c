"""Why a pod, or the pods of a job, wait; or when and why they waited."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from gputally.accounting.active_pods import ANY, holding
from gputally.accounting.terms.tier import tier_of_pod
from gputally.accounting.waiting.waiting_pod import WaitingPod
from gputally.model.disruptions.preemption import Preemption
from gputally.model.placement.advice import Suggestion
from gputally.model.placement.finding import FindingKind
from gputally.model.placement.needs import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Needs
from gputally.model.placement.pending_document import PendingPod
from gputally.model.placement.situation import Situation
from gputally.model.placement.verdict import Verdict
from gputally.model.placement.wait import PodWait, Wait
from gputally.model.placement.why_document import (
    Help,
    NeededResources,
    ObstacleText,
    PastWait,
    PreemptedBy,
    PriorityNote,
    WhyAnswer,
    WhyDocument,
)
from gputally.model.pod import PodRecord
from gputally.model.units import GPU, US_PER_SECOND, to_datetime
from gputally.pending_api.occupants import Rank, is_planned, limited, occupants
from gputally.pending_api.pending_now import PendingNow, Viewer
from gputally.pending_api.pending_pods import pending_pod
from gputally.pending_api.similar_waits import similar_waits
from gputally.pending_api.words.priority_words import priority_note
from gputally.pending_api.words.suggestion_words import help_of
from gputally.pending_api.words.verdict_words import NODE_COUNTS, SHORT, obstacle_text
from gputally.placement.findings import findings
from gputally.placement.suggestions import suggestions

_MOST_HELPS: Final = 5
_MOST_ANSWERS: Final = 10
"""In one document: pods of a job have few verdicts."""


def why_waiting(now: PendingNow, found: Sequence[WaitingPod], viewer: Viewer, *, bound: int = 0) -> WhyDocument:
    """One answer for each request and verdict of these pods, about the oldest pod."""
    alike: dict[tuple[Needs | None, Verdict], list[WaitingPod]] = {}
    for each in found:
        alike.setdefault((each.needs, each.verdict), []).append(each)
    answers = [_answer(now, pods[0], viewer, pods=len(pods)) for pods in islice(alike.values(), _MOST_ANSWERS)]
    return WhyDocument(at=to_datetime(now.at_us), currency=now.currency, answers=answers, bound=bound)


def why_waited(now: PendingNow, record: PodRecord, viewer: Viewer, *, tenant: str) -> WhyDocument:
    """The answer about a pod that waits no longer."""
    until_us = record.scheduled_us or record.end_us or now.at_us
    known = next((each.waits for each in now.finished if each.uid == record.uid), ())
    answer = WhyAnswer(
        state="ended" if record.end_us is not None else record.segments[-1].state.value if record.segments else "bound",
        pod=_past_pod(now, record, tenant),
        node=record.node or None,
        waits=_past_waits(known, now.at_us),
        waited_seconds=max(0, until_us - record.created_us) / US_PER_SECOND,
        preempted=_preempted(now.preemptions.get(record.uid), viewer),
    )
    return WhyDocument(at=to_datetime(now.at_us), currency=now.currency, answers=[answer])


def why_gone(now: PendingNow, gone: PodWait, viewer: Viewer) -> WhyDocument:
    """The answer about a pod that was bound, and that exists no longer."""
    first, last = gone.waits[0], gone.waits[-1]
    created = to_datetime(first.from_us)
    pod = PendingPod(
        namespace=gone.namespace,
        pod=gone.name,
        uid=gone.uid,
        tier=last.tier,
        tenant=last.tenant,
        job_kind="",
        job="",
        class_name=None,
        priority=None,
        may_preempt=None,
        gpus=last.quantity / GPU,
        gpu_model=ANY,
        created=created,
        reason="",
        text="",
        since=created,
        cost_per_hour=None,
    )
    answer = WhyAnswer(
        state="gone",
        pod=pod,
        waits=_past_waits(gone.waits, now.at_us),
        waited_seconds=((last.to_us or now.at_us) - first.from_us) / US_PER_SECOND,
        preempted=_preempted(now.preemptions.get(gone.uid), viewer),
    )
    return WhyDocument(at=to_datetime(now.at_us), currency=now.currency, answers=[answer])


def _answer(now: PendingNow, waiting: WaitingPod, viewer: Viewer, *, pods: int) -> WhyAnswer:
    record, verdict, rank = waiting.record, waiting.verdict, rank_of(waiting.record)
    named = (uid for obstacle in verdict.obstacles for uid in obstacle.pods)
    shown, more = limited(occupants(now, (*verdict.victims, *named), rank, viewer))
    return WhyAnswer(
        state="pending",
        pod=pending_pod(waiting, viewer),
        pods=pods,
        needs=needed(waiting.needs) if waiting.needs else None,
        obstacles=obstacle_texts(verdict, viewer),
        nodes=node_counts(verdict),
        occupants=shown,
        more_occupants=more,
        priorities=_priorities(now, waiting, viewer),
        waits=_past_waits(waiting.waits, now.at_us),
        waited_seconds=(now.at_us - waiting.since_us) / US_PER_SECOND,
        similar=similar_waits(now, tier=waiting.tier, units=record.units),
        helps=helps_of(now, verdict, waiting.needs, waiting.situation, rank=rank, viewer=viewer),
        scheduler_message=waiting.situation.text,
    )


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


def helps_of(
    now: PendingNow, verdict: Verdict | None, needs: Needs | None, situation: Situation, *, rank: Rank, viewer: Viewer
) -> list[Help]:
    """What would help, each checked by the model; nothing without a verdict, or while the request is not known."""
    if verdict is None or needs is None:
        return []
    found = suggestions(verdict, needs, now.room, situation, classes=now.classes)
    possible = (each for each in found if not any(map(is_planned, _pods(each))))
    return [help_of(each, now, rank, viewer) for each in islice(possible, _MOST_HELPS)]


def _pods(suggestion: Suggestion) -> Iterator[str]:
    """The pods that it names."""
    for change in suggestion.changes:
        yield from change.pods
    if suggestion.eviction:
        yield from suggestion.eviction.victims


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
        has_node_affinity=needs.node_terms is not None,
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
        for each in verdict.obstacles
    ]


def node_counts(verdict: Verdict) -> dict[str, int]:
    """How many nodes with GPUs what keeps it away from."""
    return {NODE_COUNTS.get(kind, kind.value): count for kind, count in verdict.counts}


def _toleration(key: str, operator: str, value: str, effect: str) -> str:
    what = key if operator == "Exists" or not value else f"{key}={value}"
    return f"{what or 'any'}:{effect}" if effect else what or "any"


def _past_waits(waits: Iterable[Wait], now_us: int) -> list[PastWait]:
    """Parts with one reason, however often their occupants changed."""
    merged: list[Wait] = []
    spans: list[tuple[int, int | None]] = []
    for each in waits:
        if merged and merged[-1].reason is each.reason and spans[-1][1] == each.from_us:
            spans[-1] = spans[-1][0], each.to_us
        else:
            merged.append(each)
            spans.append((each.from_us, each.to_us))
    return [
        PastWait(
            reason=each.reason.value,
            text=SHORT[each.reason],
            start=to_datetime(from_us),
            end=None if to_us is None else to_datetime(to_us),
            seconds=((now_us if to_us is None else to_us) - from_us) / US_PER_SECOND,
        )
        for each, (from_us, to_us) in zip(merged, spans, strict=True)
    ]


def _past_pod(now: PendingNow, record: PodRecord, tenant: str) -> PendingPod:
    """A pod that waits no longer, without a verdict."""
    terms = record.terms[-1] if record.terms else None
    created = to_datetime(record.created_us)
    return PendingPod(
        namespace=record.namespace,
        pod=record.name,
        uid=record.uid,
        tier=terms.tier if terms else tier_of_pod(record, now.rules),
        tenant=tenant,
        job_kind=record.job_kind,
        job=record.job,
        class_name=record.class_name,
        priority=record.priority or 0,
        may_preempt=record.may_preempt,
        gpus=_gpus(record),
        gpu_model=terms.gpu_model if terms else ANY,
        created=created,
        reason="",
        text="",
        since=created,
        cost_per_hour=None,
    )


def _gpus(record: PodRecord) -> float:
    return holding(record).quantity / GPU if record.segments else 0.0


def _preempted(preemption: Preemption | None, viewer: Viewer) -> PreemptedBy | None:
    if preemption is None:
        return None
    by = preemption.preemptor
    known = by is not None and viewer.sees(by.tenant)
    return PreemptedBy(
        at=to_datetime(preemption.decided_us),
        tier=by.tier if by and by.tier else "unknown",
        namespace=by.namespace if by and known else None,
        pod=by.name if by and known else None,
        is_inferred=bool(by and by.is_inferred),
    )

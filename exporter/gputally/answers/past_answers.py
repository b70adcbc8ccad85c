"""What happened to pods before: when and why they waited, and who preempted them."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from gputally.accounting.fleet.active_pods import ANY, holding
from gputally.accounting.fleet.pending_now import PendingNow, tenant_of
from gputally.accounting.terms.tier import tier_of_pod
from gputally.answers.occupants import gang_entry_of
from gputally.answers.past_pods import PastPod, PastPods
from gputally.answers.shown_pods import gone_pod, known_pod
from gputally.answers.verdict_words import REASONS
from gputally.answers.viewer import Viewer
from gputally.answers.wait_costs import waited_cost
from gputally.ledger.records import WaitRecord
from gputally.model.api.pending import PendingPod
from gputally.model.api.why import PastWait, PreemptedBy, PreemptedPod, WhyAnswer, WhyDocument
from gputally.model.disruptions import Preemption, Victim, VictimRecord
from gputally.model.pod_record import PodRecord
from gputally.model.units import GPU, US_PER_SECOND, to_datetime
from gputally.model.waits import PendingSegment
from gputally.questions.why import Why

MOST_PREEMPTED: Final = 100
"""Pods in one document."""
_UNKNOWN: Final = "unknown"
"""The tier of a preemptor that is not known."""


def why_waited(
    now: PendingNow, record: PodRecord, viewer: Viewer, *, tenant: str, waits: Sequence[WaitRecord]
) -> WhyDocument:
    """The answer about a pod that waits no longer."""
    until_us = record.scheduled_us or record.end_us or now.at_us
    cost = waited_cost((each.waits for each in now.finished if each.uid == record.uid), now.at_us)
    answer = WhyAnswer(
        state="ended" if record.end_us is not None else record.segments[-1].state.value if record.segments else "bound",
        pod=_past_pod(now, record, tenant),
        node=record.node or None,
        waits=past_waits(waits, now.at_us),
        waited_seconds=max(0, until_us - record.created_us) / US_PER_SECOND,
        waited_cost=cost.lowest,
        highest_waited_cost=cost.highest,
        preempted=preempted_by(now.preempted.get(record.uid), viewer),
        gang=gang_entry_of(now, record.uid, viewer),
    )
    return WhyDocument(at=to_datetime(now.at_us), currency=now.currency, answers=[answer])


def why_gone(now: PendingNow, gone: PastPod, viewer: Viewer) -> WhyDocument:
    """The answer about a pod that exists no longer, from the ledger."""
    known = gone.allocation
    answer = WhyAnswer(
        state="gone",
        pod=gone_pod(gone),
        node=known.node if known else None,
        waits=past_waits(gone.waits, now.at_us),
        waited_seconds=_waited_us(gone, now.at_us) / US_PER_SECOND,
        preempted=preempted_before(gone.preempted, viewer),
    )
    return WhyDocument(at=to_datetime(now.at_us), currency=now.currency, answers=[answer])


def past_waits(waits: Iterable[PendingSegment | WaitRecord], now_us: int) -> list[PastWait]:
    """Parts with one reason, however often their occupants changed."""
    merged: list[PendingSegment | WaitRecord] = []
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
            text=REASONS[each.reason].phrase,
            start=to_datetime(from_us),
            end=None if to_us is None else to_datetime(to_us),
            seconds=((now_us if to_us is None else to_us) - from_us) / US_PER_SECOND,
        )
        for each, (from_us, to_us) in zip(merged, spans, strict=True)
    ]


def _past_pod(now: PendingNow, record: PodRecord, tenant: str) -> PendingPod:
    """A pod that waits no longer."""
    terms = record.terms[-1] if record.terms else None
    return known_pod(
        record,
        tier=terms.tier if terms else tier_of_pod(record, now.rules),
        tenant=tenant,
        quantity=holding(record).quantity if record.segments else 0,
        gpu_model=terms.gpu_model if terms else ANY,
    )


def _waited_us(gone: PastPod, now_us: int) -> int:
    if gone.waits:
        last_us = gone.waits[-1].to_us
        return (now_us if last_us is None else last_us) - gone.waits[0].from_us
    return gone.allocation.scheduled_us - gone.allocation.created_us if gone.allocation else 0


def preempted_by(victim: Victim | None, viewer: Viewer) -> PreemptedBy | None:
    """Who preempted a pod that is still known, as far as the reader may know."""
    if victim is None or victim.by is None:
        return None
    by = victim.by.preemptor
    tier = by.tier if by and by.tier else _UNKNOWN
    return _preempted_by(victim.decided_us, victim.by, tier=tier, is_named=bool(by and viewer.sees(by.tenant)))


def preempted_before(victim: VictimRecord | None, viewer: Viewer) -> PreemptedBy | None:
    """Who preempted a pod that is gone.

    A restricted reader sees no names: the ledger may have no tenant of the preemptor.
    """
    if victim is None or victim.by is None:
        return None
    tier = victim.by.preemptor_tier
    return _preempted_by(victim.decided_us, victim.by, tier=tier, is_named=viewer.tenants is None)


def _preempted_by(at_us: int, found: Preemption, *, tier: str, is_named: bool) -> PreemptedBy:
    by, is_workload = found.preemptor, found.is_for_workload
    named = by if by and by.name and is_named else None
    return PreemptedBy(
        at=to_datetime(at_us),
        tier=tier,
        namespace=named.namespace if named else None,
        pod=named.name if named and not is_workload else None,
        is_inferred=bool(by and by.is_inferred),
        is_by_queue=found.queue_rule is not None,
        job_kind=(named.kind or None) if named and is_workload else None,
        job=named.name if named and is_workload else None,
    )


def with_preempted(
    document: WhyDocument, now: PendingNow, asked: Why, viewer: Viewer, *, past: PastPods
) -> WhyDocument:
    """The answer about a job, with its pods that were preempted, as far as the reader may know; others stay."""
    if not asked.job:
        return document
    known = past.victims(asked.namespace, asked.job)
    seen = (each for each in known.victims if viewer.sees(each.victim_tenant))
    found = {each.victim_uid: _past(each, viewer) for each in seen} | _present(now, asked, viewer)
    pods = sorted(found.values(), key=_order, reverse=True)
    return replace(
        document,
        preempted=pods[:MOST_PREEMPTED],
        preempted_count=len(pods),
        preempted_from=None if known.from_us is None else to_datetime(known.from_us),
    )


def _order(each: PreemptedPod) -> tuple[object, ...]:
    """A key that orders by time; what one preemptor did at once stays together."""
    by = each.by
    return by.at, by.tier, by.namespace or "", by.pod or by.job or "", each.pod


def _present(now: PendingNow, asked: Why, viewer: Viewer) -> dict[str, PreemptedPod]:
    """The preempted pods that still exist: the ledger may lack them, and names no preemptors to restricted readers."""
    found: dict[str, PreemptedPod] = {}
    for uid, victim in now.preempted.items():
        record = now.records.get(uid)
        is_asked = record and (record.namespace, record.job) == (asked.namespace, asked.job)
        if record and is_asked and viewer.sees(tenant_of(now, record)) and (by := preempted_by(victim, viewer)):
            found[uid] = PreemptedPod(
                namespace=record.namespace, pod=record.name, uid=uid, gpus=victim.quantity / GPU, by=by
            )
    return found


def _past(victim: VictimRecord, viewer: Viewer) -> PreemptedPod:
    by, at = preempted_before(victim, viewer), to_datetime(victim.decided_us)
    unknown = PreemptedBy(at=at, tier=_UNKNOWN, namespace=None, pod=None, is_inferred=False)
    return PreemptedPod(
        namespace=victim.victim_namespace,
        pod=victim.victim_name,
        uid=victim.victim_uid,
        gpus=victim.quantity / GPU,
        by=by or unknown,
    )

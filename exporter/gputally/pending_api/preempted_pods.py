"""The pods of a job that were preempted, whether others took their places or not."""

from typing import Final

from msgspec.structs import replace

from gputally.model.api.why import PreemptedBy, PreemptedPod, WhyDocument
from gputally.model.units import GPU, to_datetime
from gputally.pending_api.past_answers import preempted_before, preempted_by
from gputally.pending_api.past_pods import PastPods, PastVictim
from gputally.pending_api.pending_now import PendingNow, Viewer, tenant_of
from gputally.pending_api.pending_request import WhyRequest

MOST_PREEMPTED: Final = 100
"""Pods in one document."""
_UNKNOWN: Final = "unknown"
"""The tier of a preemptor that is not known."""


def with_preempted(
    document: WhyDocument, now: PendingNow, asked: WhyRequest, viewer: Viewer, *, past: PastPods
) -> WhyDocument:
    """The answer about a job, with its pods that were preempted, as far as the reader may know; others stay."""
    if not asked.job:
        return document
    known = past.victims(asked.namespace, asked.job)
    seen = (each for each in known.victims if viewer.sees(each.disruption.victim_tenant))
    found = {each.disruption.victim_uid: _past(each, viewer) for each in seen} | _present(now, asked, viewer)
    pods = sorted(found.values(), key=_order, reverse=True)
    return replace(
        document,
        preempted=pods[:MOST_PREEMPTED],
        preempted_count=len(pods),
        preempted_from=None if known.from_us is None else to_datetime(known.from_us),
    )


def _order(each: PreemptedPod) -> tuple[object, ...]:
    """By time; what one preemptor did at once stays together."""
    by = each.by
    return by.at, by.tier, by.namespace or "", by.pod or by.job or "", each.pod


def _present(now: PendingNow, asked: WhyRequest, viewer: Viewer) -> dict[str, PreemptedPod]:
    """Those that still exist: the ledger may not have them yet, and names no preemptors to restricted readers."""
    found: dict[str, PreemptedPod] = {}
    for uid, preemption in now.preemptions.items():
        record = now.records.get(uid)
        is_asked = record and (record.namespace, record.job) == (asked.namespace, asked.job)
        if record and is_asked and viewer.sees(tenant_of(now, record)) and (by := preempted_by(preemption, viewer)):
            found[uid] = PreemptedPod(
                namespace=record.namespace, pod=record.name, uid=uid, gpus=preemption.quantity / GPU, by=by
            )
    return found


def _past(victim: PastVictim, viewer: Viewer) -> PreemptedPod:
    of, by = victim.disruption, preempted_before(victim.preemption, viewer)
    unknown = PreemptedBy(at=to_datetime(of.decided_us), tier=_UNKNOWN, namespace=None, pod=None, is_inferred=False)
    return PreemptedPod(
        namespace=of.victim_namespace,
        pod=of.victim_name,
        uid=of.victim_uid,
        gpus=of.quantity / GPU,
        by=by or unknown,
    )

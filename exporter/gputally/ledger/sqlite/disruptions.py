"""What followed disruptions: the work that they destroyed, and the pending deliveries of their records.

Integers of lost work are text: GPU-time and costs outgrow 64 bits.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from gputally.ledger.preemption_records import PendingDeliveries, PendingDelivery, VictimRecords
from gputally.ledger.sqlite.rows import Row, Rows
from gputally.ledger.sqlite.victims import DECIDED, TOGETHER, read_together
from gputally.model.lost_work import CheckpointSource, LostPod, LostWork

_LOST_WORK: Final = """
SELECT victim_uid, gpu_time, costs, basis, checkpoint_us, members, stalled_gpu_time, at_intervals, is_final
FROM lost_work JOIN disruptions USING (victim_uid)
WHERE {victims}
"""
_LOST_PODS: Final = """
SELECT victim_uid, pod_uid, from_us, to_us, basis FROM disruptions JOIN lost_pods USING (victim_uid)
WHERE {victims}
ORDER BY pod_uid
"""
FINISH_DELIVERY: Final = (
    "UPDATE preemption_deliveries SET result = ?, finished_us = ? WHERE job_preemption = ? AND result IS NULL"
)
_COUNT_PENDING: Final = "SELECT count(*) FROM preemption_deliveries WHERE result IS NULL"
_PENDING: Final = """
SELECT job_preemption, queued_us FROM preemption_deliveries
WHERE result IS NULL AND job_preemption > :after
ORDER BY job_preemption LIMIT :limit
"""
_PODS_COMPLETE: Final = "SELECT at_us FROM watches WHERE kind = 'pods'"


def read_lost_work(rows: Rows, values: Mapping[str, Any], *, victims: str = DECIDED) -> dict[str, LostWork]:
    """The losses of `victims`, a condition with these values, by victim."""
    pods: dict[str, list[LostPod]] = {}
    for victim_uid, *row in rows(_LOST_PODS.format(victims=victims), values):
        pods.setdefault(victim_uid, []).append(lost_pod(row))
    found = rows(_LOST_WORK.format(victims=victims), values)
    return {row[0]: _lost_work(row, pods.get(row[0], ())) for row in found}


def lost_pod(row: Sequence[Any]) -> LostPod:
    """UID, start, end and basis."""
    uid, from_us, to_us, basis = row
    return LostPod(uid, from_us, to_us, CheckpointSource(basis))


def _lost_work(row: Row, pods: Sequence[LostPod]) -> LostWork:
    uid, gpu_time, costs, basis, checkpoint_us, members, stalled, at_intervals, is_final = row
    return LostWork(
        victim_uid=uid,
        gpu_time=int(gpu_time),
        costs=tuple((currency, int(cost)) for currency, cost in msgspec.json.decode(costs)),
        basis=CheckpointSource(basis),
        checkpoint_us=checkpoint_us,
        members=members,
        pods=tuple(pods),
        stalled_gpu_time=int(stalled),
        at_intervals=tuple((every_us, int(amount)) for every_us, amount in msgspec.json.decode(at_intervals)),
        is_final=bool(is_final),
    )


def read_pending(rows: Rows, *, after: str, limit: int) -> PendingDeliveries:
    """See `LedgerReader.pending_deliveries`."""
    [(total,)] = rows(_COUNT_PENDING, {})
    complete = rows(_PODS_COMPLETE, {})
    page = rows(_PENDING, {"after": after, "limit": limit}) if total else []
    return PendingDeliveries(total, complete[0][0] if complete else 0, [PendingDelivery(*row) for row in page])


def read_victims(rows: Rows, job_preemptions: Sequence[str]) -> VictimRecords:
    """See `LedgerReader.victims`."""
    ids = {"ids": json.dumps(list(job_preemptions))}
    return VictimRecords(list(read_together(rows, ids)), read_lost_work(rows, ids, victims=TOGETHER))

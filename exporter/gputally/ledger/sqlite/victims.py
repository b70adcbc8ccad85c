"""Victims as rows: pods that lost their GPUs involuntarily, for whom they were preempted, and what followed.

What followed is the work that they lost, and the pending deliveries of their records. Integers of lost work are text:
GPU-time and costs outgrow 64 bits.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import convert

from gputally.ledger.preemption_records import PendingDeliveries, PendingDelivery, VictimRecords
from gputally.ledger.sqlite.rows import Row, Rows
from gputally.ledger.tables.statements import listed
from gputally.ledger.tables.victims import OF_PREEMPTION, OF_PREEMPTOR, OF_VICTIM, VICTIM_COLUMNS
from gputally.model.disruptions import Cause, VictimRecord
from gputally.model.lost_work import CheckpointSource, LostPod, LostWork

_SELECT: Final = f"SELECT {listed(VICTIM_COLUMNS)} FROM victims WHERE "  # noqa: S608 (names of columns)
_IN_ORDER: Final = " ORDER BY decided_us, victim_uid"
DECIDED: Final = "decided_us >= :start AND decided_us < :end AND cause IN (SELECT value FROM json_each(:causes))"
"""The victims of disruptions for the :causes (JSON) that were decided in the window [:start, :end)."""
TOGETHER: Final = "job_preemption != '' AND job_preemption IN (SELECT value FROM json_each(:ids))"
"""The victims of the preemptions of jobs with these :ids (JSON)."""
_OF_JOB: Final = "(:job = '' OR (job = :job AND victim_namespace = :namespace))"


def read_disruptions(
    rows: Rows, bounds: Mapping[str, Any], causes: Collection[Cause], of_job: tuple[str, str]
) -> Iterator[VictimRecord]:
    """See `LedgerReader.disruptions`; `bounds` are those of the window."""
    values = {**bounds, "causes": json.dumps([*causes]), "namespace": of_job[0], "job": of_job[1]}
    return _read(rows, f"is_disruption AND {DECIDED} AND {_OF_JOB}", values)


def read_preemptions(rows: Rows, bounds: Mapping[str, Any]) -> Iterator[VictimRecord]:
    """See `LedgerReader.preemptions`; `bounds` are those of the window."""
    return _read(rows, "preemptor_tier IS NOT NULL AND decided_us >= :start AND decided_us < :end", bounds)


def read_together(rows: Rows, ids: Mapping[str, Any]) -> Iterator[VictimRecord]:
    """The victims of the preemptions of jobs with these IDs."""
    return _read(rows, f"is_disruption AND {TOGETHER}", ids)


def _read(rows: Rows, condition: str, values: Mapping[str, Any]) -> Iterator[VictimRecord]:
    found = rows(f"{_SELECT}{condition}{_IN_ORDER}", values)
    return (_victim_of(dict(zip(VICTIM_COLUMNS, row, strict=True))) for row in found)


def _victim_of(row: Mapping[str, Any]) -> VictimRecord:
    own = {name: row[name] for name in OF_VICTIM}
    by = None if row["preemptor_tier"] is None else _preemption_of(row)
    return convert(own | {"by": by}, VictimRecord, strict=False)


def _preemption_of(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: row[name] for name in OF_PREEMPTION if row[name] is not None}
    if pods := row["preemptor_pods"]:
        found["preemptor_pods"] = json.loads(pods)
    return found if row["preemptor_uid"] is None else found | {"preemptor": _preemptor_of(row)}


def _preemptor_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """NULL is the default of a field, except that the quantity of a workload may not be known."""
    found = {field: row[column] for column, field in OF_PREEMPTOR.items() if row[column] is not None}
    if "tenant" in found:
        found["tier"] = row["preemptor_tier"]
    return found | ({"quantity": row["preemptor_quantity"]} if "kind" in found else {})


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

"""Preemptions and other disruptions: who lost GPUs to whom, the work that this destroyed, and the pending deliveries.

Integers of lost work are text: GPU-time and costs outgrow 64 bits.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gputally.ledger.preemption_records import PendingDeliveries, PendingDelivery, PreemptionRecord, VictimRecords
from gputally.ledger.sqlite.rows import Row, Rows, insert_or, records_of
from gputally.model.disruptions import DisruptionRecord, Preemption, Preemptor
from gputally.model.lost_work import CheckpointSource, LostPod, LostWork

if TYPE_CHECKING:  # of the writer alone
    from gputally.accounting.changes import Changes

PREEMPTIONS: Final = f"""
SELECT {", ".join(PreemptionRecord.__struct_fields__)}
FROM preemptions p
WHERE decided_us >= :start AND decided_us < :end
  AND recorded_us = (SELECT max(recorded_us) FROM preemptions WHERE victim_uid = p.victim_uid)
ORDER BY decided_us, victim_uid
"""  # noqa: S608 (literals only)

DECIDED: Final = "decided_us >= :start AND decided_us < :end AND cause IN (SELECT value FROM json_each(:causes))"
"""The victims of disruptions for the :causes (JSON) that were decided in the window [:start, :end)."""
DISRUPTIONS: Final = f"""
SELECT {", ".join(DisruptionRecord.__struct_fields__)} FROM disruptions
WHERE {DECIDED} AND (:job = '' OR (job = :job AND victim_namespace = :namespace))
ORDER BY decided_us, victim_uid
"""  # noqa: S608 (literals only)


INSERT_PREEMPTION: Final = insert_or(26, "REPLACE INTO preemptions")
INSERT_DISRUPTION: Final = insert_or(25, "REPLACE INTO disruptions")
INSERT_LOST_WORK: Final = "INSERT OR REPLACE INTO lost_work VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_LOST_WORK: Final = """
SELECT victim_uid, gpu_time, costs, basis, checkpoint_us, members, stalled_gpu_time, at_intervals, is_final
FROM lost_work JOIN disruptions USING (victim_uid)
WHERE {victims}
"""
INSERT_LOST_POD: Final = "INSERT OR REPLACE INTO lost_pods VALUES (?, ?, ?, ?, ?)"
REVISE_LOST_PODS: Final = "DELETE FROM lost_pods WHERE victim_uid = ?"
WITHDRAW_LOST_WORK: Final = "DELETE FROM lost_work WHERE victim_uid = ?"
_LOST_PODS: Final = """
SELECT victim_uid, pod_uid, from_us, to_us, basis FROM disruptions JOIN lost_pods USING (victim_uid)
WHERE {victims}
ORDER BY pod_uid
"""
INSERT_DELIVERY: Final = """
INSERT INTO preemption_deliveries VALUES (?, ?, NULL, NULL)
ON CONFLICT DO UPDATE SET result = NULL, finished_us = NULL, queued_us = excluded.queued_us WHERE result = 'withdrawn'
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
_VICTIMS: Final = """(
    SELECT victim_uid FROM disruptions
    WHERE job_preemption != '' AND job_preemption IN (SELECT value FROM json_each(:ids))
)"""
_DISRUPTIONS: Final = f"""
SELECT {", ".join(DisruptionRecord.__struct_fields__)} FROM disruptions
WHERE victim_uid IN {_VICTIMS}
ORDER BY decided_us, victim_uid
"""  # noqa: S608 (literals only)
_PREEMPTIONS: Final = f"""
SELECT {", ".join(PreemptionRecord.__struct_fields__)} FROM preemptions p
WHERE victim_uid IN {_VICTIMS}
  AND recorded_us = (SELECT max(recorded_us) FROM preemptions WHERE victim_uid = p.victim_uid)
"""  # noqa: S608 (literals only)


def preemptions(changes: "Changes") -> Iterator[Row]:
    """Preemptions as counted."""
    for p in filter(None, changes.counted_preemptions.values()):
        preemptor = p.preemptor
        yield (
            p.victim_uid,
            changes.at_us,
            p.victim_namespace,
            p.victim_name,
            p.victim_tier,
            p.victim_tenant,
            preemptor.uid if preemptor else None,
            preemptor.namespace if preemptor else None,
            preemptor.name if preemptor else None,
            p.counted[1] if p.counted else "",
            p.node,
            p.quantity,
            p.decided_us,
            p.requested_us,
            p.released_us,
            bool(preemptor and preemptor.is_inferred),
            *(p.victim_class, p.victim_priority),
            *_powers(preemptor),
            *_workload(p),
        )


def withdrawn_preemptions(changes: "Changes") -> Iterator[Row]:
    """Victims of queues that had ended by themselves after all."""
    return ((uid,) for uid, each in changes.counted_preemptions.items() if each is None)


def _powers(preemptor: Preemptor | None) -> Row:
    """Class, priority and whether its policy permits preemptions; NULL while the pod is not known."""
    if preemptor is None or preemptor.priority is None:
        return None, None, None
    return preemptor.class_name, preemptor.priority, preemptor.may_preempt


def _workload(preemption: Preemption) -> Row:
    """Tenant, and for a workload the job, GPUs and pods on the node; the rule of the queue."""
    by = preemption.preemptor
    tenant = by.tenant if by and by.tier else None
    if by is None or not by.kind:
        return tenant, None, None, None, preemption.queue_rule
    pods = json.dumps(preemption.preemptor_pods) if by.uid else None  # KAI names no UID: its pods are not recognised
    return tenant, by.kind, by.quantity, pods, preemption.queue_rule


def disruptions(changes: "Changes") -> Iterator[Row]:
    """Disrupted pods, as last known."""
    for each in filter(None, changes.disruptions.values()):
        values = (getattr(each, name) for name in DisruptionRecord.__struct_fields__[1:])
        yield each.victim_uid, changes.at_us, *values


def withdrawn_disruptions(changes: "Changes") -> Iterator[Row]:
    """Pods that had ended by themselves after all."""
    return ((uid,) for uid, each in changes.disruptions.items() if each is None)


def lost_work(changes: "Changes") -> Iterator[Row]:
    """New and corrected losses."""
    for each in filter(None, changes.lost_work.values()):
        amounts = str(each.gpu_time), _pairs(each.costs)
        basis = each.basis.value, each.checkpoint_us, each.members
        others = str(each.stalled_gpu_time), _pairs(each.at_intervals), each.is_final
        yield each.victim_uid, changes.at_us, *amounts, *basis, *others


def lost_pods(changes: "Changes") -> Iterator[Row]:
    """The pods of these losses."""
    for each in filter(None, changes.lost_work.values()):
        for pod in each.pods:
            yield pod.uid, each.victim_uid, pod.from_us, pod.to_us, pod.basis.value


def revised_lost_work(changes: "Changes") -> Iterator[Row]:
    """The victims whose pods are replaced or removed."""
    return ((uid,) for uid in changes.lost_work)


def withdrawn_lost_work(changes: "Changes") -> Iterator[Row]:
    """The pods that proved to be no victims."""
    return ((uid,) for uid, each in changes.lost_work.items() if each is None)


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


def _pairs(pairs: Sequence[tuple[str | int, int]]) -> str:
    return msgspec.json.encode([[key, str(amount)] for key, amount in pairs]).decode()


def read_pending(rows: Rows, *, after: str, limit: int) -> PendingDeliveries:
    """See `LedgerReader.pending_deliveries`."""
    [(total,)] = rows(_COUNT_PENDING, {})
    complete = rows(_PODS_COMPLETE, {})
    page = rows(_PENDING, {"after": after, "limit": limit}) if total else []
    return PendingDeliveries(total, complete[0][0] if complete else 0, [PendingDelivery(*row) for row in page])


def read_victims(rows: Rows, job_preemptions: Sequence[str]) -> VictimRecords:
    """See `LedgerReader.victims`."""
    ids = {"ids": json.dumps(list(job_preemptions))}
    return VictimRecords(
        list(records_of(DisruptionRecord, rows(_DISRUPTIONS, ids))),
        {each.victim_uid: each for each in records_of(PreemptionRecord, rows(_PREEMPTIONS, ids))},
        read_lost_work(rows, ids, victims=f"victim_uid IN {_VICTIMS}"),
    )


def deliveries(changes: "Changes") -> Iterator[Row]:
    """New ones. A row that exists stays as it is, unless the preemption was withdrawn and is reported again."""
    for each in filter(None, changes.disruptions.values()):
        if each.announced:
            yield each.job_preemption, changes.at_us

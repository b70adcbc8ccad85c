"""Lost work as rows of the ledger, and back. Integers are text: GPU-time and costs outgrow 64 bits."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import json

from gputally.accounting.changes.changes import Changes
from gputally.ledger.sqlite.queries import DECIDED
from gputally.ledger.sqlite.segment_rows import Row
from gputally.ledger.sqlite.sums.names import Rows
from gputally.model.work.checkpoint import CheckpointSource
from gputally.model.work.lost_work import LostPod, LostWork

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


def lost_work(changes: Changes) -> Iterator[Row]:
    """New and corrected losses."""
    for each in filter(None, changes.lost_work.values()):
        amounts = str(each.gpu_time), _pairs(each.costs)
        basis = each.basis.value, each.checkpoint_us, each.members
        others = str(each.stalled_gpu_time), _pairs(each.at_intervals), each.is_final
        yield each.victim_uid, changes.at_us, *amounts, *basis, *others


def lost_pods(changes: Changes) -> Iterator[Row]:
    """The pods of these losses."""
    for each in filter(None, changes.lost_work.values()):
        for pod in each.pods:
            yield pod.uid, each.victim_uid, pod.from_us, pod.to_us, pod.basis.value


def revised(changes: Changes) -> Iterator[Row]:
    """The victims whose pods are replaced or removed."""
    return ((uid,) for uid in changes.lost_work)


def withdrawn(changes: Changes) -> Iterator[Row]:
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
        costs=tuple((currency, int(cost)) for currency, cost in json.decode(costs)),
        basis=CheckpointSource(basis),
        checkpoint_us=checkpoint_us,
        members=members,
        pods=tuple(pods),
        stalled_gpu_time=int(stalled),
        at_intervals=tuple((every_us, int(amount)) for every_us, amount in json.decode(at_intervals)),
        is_final=bool(is_final),
    )


def _pairs(pairs: Sequence[tuple[str | int, int]]) -> str:
    return json.encode([[key, str(amount)] for key, amount in pairs]).decode()

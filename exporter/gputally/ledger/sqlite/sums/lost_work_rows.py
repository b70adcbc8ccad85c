"""Lost work as rows of the ledger, and back. Integers are text: GPU-time and costs outgrow 64 bits."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import json

from gputally.accounting.changes import Changes
from gputally.model.work.checkpoint import CheckpointSource
from gputally.model.work.lost_work import LostWork

Row = tuple[Any, ...]
INSERT_LOST_WORK: Final = "INSERT OR REPLACE INTO lost_work VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
LOST_WORK_COLUMNS: Final = (
    "victim_uid, gpu_time, costs, basis, checkpoint_us, members, stalled_gpu_time, at_intervals, is_final"
)
LOST_WORK: Final = f"""
SELECT {LOST_WORK_COLUMNS} FROM lost_work JOIN disruptions USING (victim_uid)
WHERE decided_us >= :start AND decided_us < :end
"""  # noqa: S608 (literals only)


def lost_work(changes: Changes) -> Iterator[Row]:
    """New and corrected losses."""
    for each in changes.lost_work.values():
        amounts = str(each.gpu_time), _pairs(each.costs)
        basis = each.basis.value, each.checkpoint_us, each.members
        others = str(each.stalled_gpu_time), _pairs(each.at_intervals), each.is_final
        yield each.victim_uid, changes.at_us, *amounts, *basis, *others


def lost_work_of(row: Row) -> LostWork:
    """One row of LOST_WORK."""
    uid, gpu_time, costs, basis, checkpoint_us, members, stalled, at_intervals, is_final = row
    return LostWork(
        victim_uid=uid,
        gpu_time=int(gpu_time),
        costs=tuple((currency, int(cost)) for currency, cost in json.decode(costs)),
        basis=CheckpointSource(basis),
        checkpoint_us=checkpoint_us,
        members=members,
        stalled_gpu_time=int(stalled),
        at_intervals=tuple((every_us, int(amount)) for every_us, amount in json.decode(at_intervals)),
        is_final=bool(is_final),
    )


def _pairs(pairs: Sequence[tuple[str | int, int]]) -> str:
    return json.encode([[key, str(amount)] for key, amount in pairs]).decode()

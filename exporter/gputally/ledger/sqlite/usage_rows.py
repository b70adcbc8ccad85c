"""Converts the measurements of agents to rows of the ledger, and back."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from gputally.accounting.changes.changes import Changes
from gputally.ledger.records import Window
from gputally.ledger.sqlite.sums.names import Rows
from gputally.model.measured.usage_record import (
    AssignmentHour,
    AssignmentKey,
    AssignmentRecord,
    GpuKey,
    UnallocatedHour,
)
from gputally.model.measured.usage_report import GpuHour, Hour

Row = tuple[Any, ...]
_ASSIGNMENT: Final = ("node", "gpu", "resource", "share", "seen_us", "after_us", "until_us", "ahead_us", "pod_uid")
_HOUR: Final = ("from_us", "to_us", "measured", "used", "burst", "memory", "memory_us", "energy")
_GPU_HOUR: Final = ("node", "unattributed", "energy")


def _columns(names: Sequence[str]) -> str:
    return ", ".join(names)


def _update(names: Sequence[str]) -> str:
    """Unlike REPLACE, this does not update indexes of unchanged columns."""
    return "DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in names)


def _values(count: int) -> str:
    return ", ".join("?" * count)


_OF_KEY: Final = " AND ".join(f"{name} = ?" for name in AssignmentKey._fields)
UPSERT_ASSIGNMENT: Final = f"""
INSERT INTO usage_assignments ({_columns(AssignmentKey._fields + _ASSIGNMENT)})
VALUES ({_values(len(AssignmentKey._fields + _ASSIGNMENT))})
ON CONFLICT ({_columns(AssignmentKey._fields)}) {_update(_ASSIGNMENT)}
"""  # noqa: S608 (literals only)
UPSERT_HOUR: Final = f"""
INSERT INTO usage_hours (assignment, start_us, {_columns(_HOUR)}, open)
SELECT assignment, {_values(len(_HOUR) + 2)} FROM usage_assignments WHERE {_OF_KEY}
ON CONFLICT (assignment, start_us) {_update((*_HOUR, "open"))}
"""  # noqa: S608 (literals only)
UPSERT_UNALLOCATED: Final = f"""
INSERT INTO unallocated_usage ({_columns(GpuKey._fields + _GPU_HOUR)}, open)
VALUES ({_values(len(GpuKey._fields + _GPU_HOUR) + 1)})
ON CONFLICT ({_columns(GpuKey._fields)}) {_update((*_GPU_HOUR, "open"))}
"""  # noqa: S608 (literals only)
_ASSIGNED: Final = f"SELECT {_columns(AssignmentKey._fields + _ASSIGNMENT)}, open, start_us, {_columns(_HOUR)}"
SELECT_ASSIGNED: Final = f"""
{_ASSIGNED} FROM usage_hours INDEXED BY usage_hours_open CROSS JOIN usage_assignments USING (assignment)
WHERE open
ORDER BY {_columns(AssignmentKey._fields)}, start_us
"""
ASSIGNED_IN_HOUR: Final = f"""
{_ASSIGNED} FROM usage_hours CROSS JOIN usage_assignments USING (assignment)
WHERE start_us = :start
ORDER BY {_columns(AssignmentKey._fields)}
"""
_NEXT_HOUR: Final = "SELECT min(start_us) FROM usage_hours WHERE start_us > :after AND start_us < :end"
_UNALLOCATED: Final = f"SELECT {_columns(GpuKey._fields + _GPU_HOUR)}, open FROM unallocated_usage"  # noqa: S608 (literals only)
SELECT_UNALLOCATED: Final = f"""
{_UNALLOCATED} INDEXED BY unallocated_usage_open
WHERE open
ORDER BY start_us, epoch, gpu
"""
UNALLOCATED_IN_WINDOW: Final = (
    f"{_UNALLOCATED} WHERE start_us >= :start AND start_us < :end ORDER BY start_us, epoch, gpu"
)


def assignments(changes: Changes) -> Iterator[Row]:
    """The latest report of each device assignment, once."""
    latest: dict[AssignmentKey, AssignmentRecord] = {}
    for row in changes.assignment_usage.values():
        known = latest.get(row.assignment.key)
        if known is None or _report_order(known) <= _report_order(row.assignment):
            latest[row.assignment.key] = row.assignment
    for assignment in latest.values():
        yield *assignment.key, *(getattr(assignment, name) for name in _ASSIGNMENT)


def _report_order(assignment: AssignmentRecord) -> tuple[int, bool, bool]:
    return assignment.seen_us, assignment.until_us is not None, assignment.pod_uid is not None


def hours(changes: Changes) -> Iterator[Row]:
    """Latest hours of device assignments; byte·µs as text, since they outgrow 64 bits."""
    for row in changes.assignment_usage.values():
        hour = row.hour
        spans = (hour.start_us, hour.from_us, hour.to_us)
        memory = (str(hour.memory), hour.memory_us)
        yield *spans, hour.measured, hour.used, hour.burst, *memory, hour.energy, row.open, *row.assignment.key


def unallocated(changes: Changes) -> Iterator[Row]:
    """Latest hours of GPUs outside any allocation."""
    for row in changes.unallocated_usage.values():
        yield *row.key, row.node, row.hour.unattributed, row.hour.energy, row.open


def hours_in(rows: Rows, window: Window) -> Iterator[int]:
    """The starts of all hours with usage."""
    start_us: int | None = window.start_us - 1
    while start_us is not None:
        [(start_us,)] = rows(_NEXT_HOUR, {"after": start_us, "end": window.end_us})
        if start_us is not None:
            yield start_us


def assignment_hour(row: Row) -> AssignmentHour:
    """One row of SELECT_ASSIGNED or ASSIGNED_IN_HOUR."""
    key, rest = row[: len(AssignmentKey._fields)], row[len(AssignmentKey._fields) :]
    is_open, start_us, *amounts = rest[len(_ASSIGNMENT) :]
    hour = dict(zip(_HOUR, amounts, strict=True))
    return AssignmentHour(
        assignment=AssignmentRecord(key=AssignmentKey(*key), **dict(zip(_ASSIGNMENT, rest, strict=False))),
        hour=Hour(start_us=start_us, **hour | {"memory": int(hour["memory"])}),
        open=bool(is_open),
    )


def unallocated_hour(row: Row) -> UnallocatedHour:
    """One row of SELECT_UNALLOCATED or UNALLOCATED_IN_WINDOW."""
    epoch, gpu, start_us, node, unattributed, energy, is_open = row
    hour = GpuHour(start_us=start_us, unattributed=unattributed, energy=energy)
    return UnallocatedHour(key=GpuKey(epoch, gpu, start_us), node=node, hour=hour, open=bool(is_open))

"""Between what agents measured and the rows of the ledger."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from gputally.accounting.changes import Changes
from gputally.model.measured.usage_record import GpuKey, HeldHour, Holder, HolderKey, UnheldHour
from gputally.model.measured.usage_report import GpuHour, Hour

Row = tuple[Any, ...]
_HOLDER: Final = ("node", "gpu", "resource", "share", "seen_us", "after_us", "until_us", "ahead_us", "pod_uid")
_HOUR: Final = ("from_us", "to_us", "measured", "used", "burst", "memory", "memory_us", "energy")
_GPU_HOUR: Final = ("node", "unattributed", "energy")


def _columns(names: Sequence[str]) -> str:
    return ", ".join(names)


def _renewed(names: Sequence[str]) -> str:
    """Unlike REPLACE this leaves indexes alone whose columns stay the same."""
    return "DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in names)


def _values(count: int) -> str:
    return ", ".join("?" * count)


_OF_KEY: Final = " AND ".join(f"{name} = ?" for name in HolderKey._fields)
UPSERT_HOLDER: Final = f"""
INSERT INTO usage_holders ({_columns(HolderKey._fields + _HOLDER)})
VALUES ({_values(len(HolderKey._fields + _HOLDER))})
ON CONFLICT ({_columns(HolderKey._fields)}) {_renewed(_HOLDER)}
"""  # noqa: S608 (literals only)
UPSERT_HOUR: Final = f"""
INSERT INTO usage_hours (holder, start_us, {_columns(_HOUR)}, open)
SELECT holder, {_values(len(_HOUR) + 2)} FROM usage_holders WHERE {_OF_KEY}
ON CONFLICT (holder, start_us) {_renewed((*_HOUR, "open"))}
"""  # noqa: S608 (literals only)
UPSERT_UNHELD: Final = f"""
INSERT INTO unheld_usage ({_columns(GpuKey._fields + _GPU_HOUR)}, open)
VALUES ({_values(len(GpuKey._fields + _GPU_HOUR) + 1)})
ON CONFLICT ({_columns(GpuKey._fields)}) {_renewed((*_GPU_HOUR, "open"))}
"""  # noqa: S608 (literals only)
_HELD: Final = f"SELECT {_columns(HolderKey._fields + _HOLDER)}, open, start_us, {_columns(_HOUR)}"
SELECT_HELD: Final = f"""
{_HELD} FROM usage_hours INDEXED BY usage_hours_open CROSS JOIN usage_holders USING (holder)
WHERE open
ORDER BY {_columns(HolderKey._fields)}, start_us
"""
HELD_IN_HOUR: Final = f"""
{_HELD} FROM usage_hours CROSS JOIN usage_holders USING (holder)
WHERE start_us = :start
ORDER BY {_columns(HolderKey._fields)}
"""
NEXT_HOUR: Final = "SELECT min(start_us) FROM usage_hours WHERE start_us > :after AND start_us < :end"
_UNHELD: Final = f"SELECT {_columns(GpuKey._fields + _GPU_HOUR)}, open FROM unheld_usage"  # noqa: S608 (literals only)
SELECT_UNHELD: Final = f"""
{_UNHELD} INDEXED BY unheld_usage_open
WHERE open
ORDER BY start_us, epoch, gpu
"""
UNHELD_IN_WINDOW: Final = f"{_UNHELD} WHERE start_us >= :start AND start_us < :end ORDER BY start_us, epoch, gpu"


def holders(changes: Changes) -> Iterator[Row]:
    """Each holder once, as it was told last."""
    latest: dict[HolderKey, Holder] = {}
    for row in changes.held_usage.values():
        known = latest.get(row.holder.key)
        if known is None or _told(known) <= _told(row.holder):
            latest[row.holder.key] = row.holder
    for holder in latest.values():
        yield *holder.key, *(getattr(holder, name) for name in _HOLDER)


def _told(holder: Holder) -> tuple[int, bool, bool]:
    return holder.seen_us, holder.until_us is not None, holder.pod_uid is not None


def hours(changes: Changes) -> Iterator[Row]:
    """Hours of holders as last told; byte·µs as text, since they outgrow 64 bits."""
    for row in changes.held_usage.values():
        hour = row.hour
        spans = (hour.start_us, hour.from_us, hour.to_us)
        memory = (str(hour.memory), hour.memory_us)
        yield *spans, hour.measured, hour.used, hour.burst, *memory, hour.energy, row.open, *row.holder.key


def unheld(changes: Changes) -> Iterator[Row]:
    """Hours of GPUs as last told."""
    for row in changes.unheld_usage.values():
        yield *row.key, row.node, row.hour.unattributed, row.hour.energy, row.open


def held_hour(row: Row) -> HeldHour:
    """One row of SELECT_HELD or HELD_IN_HOUR."""
    key, rest = row[: len(HolderKey._fields)], row[len(HolderKey._fields) :]
    is_open, start_us, *amounts = rest[len(_HOLDER) :]
    hour = dict(zip(_HOUR, amounts, strict=True))
    return HeldHour(
        holder=Holder(key=HolderKey(*key), **dict(zip(_HOLDER, rest, strict=False))),
        hour=Hour(start_us=start_us, **hour | {"memory": int(hour["memory"])}),
        open=bool(is_open),
    )


def unheld_hour(row: Row) -> UnheldHour:
    """One row of SELECT_UNHELD or UNHELD_IN_WINDOW."""
    epoch, gpu, start_us, node, unattributed, energy, is_open = row
    hour = GpuHour(start_us=start_us, unattributed=unattributed, energy=energy)
    return UnheldHour(key=GpuKey(epoch, gpu, start_us), node=node, hour=hour, open=bool(is_open))

"""From when on a ledger has the kinds of records that versions after the first one added."""

from collections.abc import Callable, Mapping
from sqlite3 import Connection
from typing import Final

from gputally.ledger.records import IMPORTED, Records
from gputally.ledger.sqlite.rows import Row

_KEYS: Final = {Records.DISRUPTIONS: "disruptions_from_us", Records.WAITS: "waits_from_us"}
"""In the table `meta`."""
_FIRST: Final = {
    Records.DISRUPTIONS: "(SELECT min(decided_us) FROM disruptions)",
    Records.WAITS: "(SELECT min(from_us) FROM waits)",
}
_OFF: Final = ""
"""The value of a kind that is not recorded at present."""
_KEEP: Final = {
    records: (
        f"INSERT INTO meta SELECT '{key}', ifnull(min(:start, {_FIRST[records]}), :start) "  # noqa: S608 (literals)
        f"WHERE NOT EXISTS (SELECT 1 FROM meta WHERE key = '{key}' AND value <> '{_OFF}') "
        "ON CONFLICT (key) DO UPDATE SET value = :start"
    )
    for records, key in _KEYS.items()
}
"""`start`, or the time of the first record of an older version, which kept no start.

Only the first write looks for that record, in all of them.
"""
_NOT_RECORDED: Final = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
MOVE_WAITS: Final = f"""
INSERT INTO meta VALUES ('{_KEYS[Records.WAITS]}', CAST(:before AS TEXT))
ON CONFLICT (key) DO UPDATE SET value = CAST(max(CAST(value AS INTEGER), :before) AS TEXT) WHERE value <> '{_OFF}'
"""  # noqa: S608 (literals only)
"""In the transaction that deletes waits which ended before :before (µs)."""


def keep_starts(connection: Connection, *, start_us: int, has_waits: bool) -> None:
    """Keep that each kind of records begins at `start_us`, unless it began before; or that waits are not recorded.

    This comes before the first ones are written.
    """
    for records, statement in _KEEP.items():
        if records is Records.WAITS and not has_waits:
            connection.execute(_NOT_RECORDED, (_KEYS[records], _OFF))
        else:
            connection.execute(statement, {"start": start_us})


def later_records(
    meta: Mapping[str, str], rows: Callable[[str], list[Row]], *, accounted_us: int
) -> dict[Records, int | None]:
    """The kinds that begin after the accounting start, with their first time (µs); None for those that are missing."""
    if meta.get("cluster") == IMPORTED:
        return dict.fromkeys(_KEYS)
    start_us, found = int(meta["accounting_start_us"]), dict[Records, int | None]()
    for records, key in _KEYS.items():
        value = meta.get(key)
        if value == _OFF:
            found[records] = None
        elif (from_us := _first(records, rows, accounted_us) if value is None else int(value)) > start_us:
            found[records] = from_us
    if "detail_start_us" in meta:  # the retention deletes single pods and waits
        detail_us = int(meta["detail_start_us"])
        waits_us = found.get(Records.WAITS, start_us)
        found |= {Records.PODS: detail_us, Records.WAITS: None if waits_us is None else max(waits_us, detail_us)}
    return found


def _first(records: Records, rows: Callable[[str], list[Row]], accounted_us: int) -> int:
    """The first record of a ledger that only older versions wrote: it shows since when they kept such records."""
    [(first_us,)] = rows(f"SELECT {_FIRST[records]}")
    return accounted_us if first_us is None else int(first_us)

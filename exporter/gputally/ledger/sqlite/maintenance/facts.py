"""Describes a ledger file: what it is, how large it is, and how much is in it."""

import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from msgspec import Struct

from gputally.ledger.sqlite.lock import is_locked
from gputally.ledger.sqlite.schema import connect_reading
from gputally.ledger.sqlite.sqlite_errors import converted_errors

_COUNTS: Final = {
    "pods": "SELECT count(*) FROM pods",
    "open_allocations": "SELECT count(*) FROM working WHERE kind = 'pod'",
    "segments": "SELECT count(*) FROM pod_segments",
    "preemptions": "SELECT count(*) FROM preemptions",
    "usage_hours": "SELECT count(*) FROM usage_hours",
    "capacity_changes": "SELECT count(*) FROM capacity",
}
_COMPLETE: Final = ("accounting_start_us", "at_us", "evaluated_us")
"""The latest of these is the time up to which the ledger is complete."""


class LedgerFacts(Struct, frozen=True, kw_only=True):
    """Sizes are bytes, times are µs since 1970, None if unknown.

    `cluster` is the UID of the namespace kube-system. `is_open` says whether a process writes the ledger now.
    """

    path: str
    cluster: str | None
    schema: int
    file_bytes: int
    wal_bytes: int
    free_bytes: int
    is_open: bool | None
    accounting_start_us: int | None
    accounted_us: int | None
    rows: Mapping[str, int]
    backups: list[str]


def facts_of(path: Path) -> LedgerFacts:
    """Read the facts beside a running aggregator; nothing is written. Raises: LedgerError."""
    with closing(connect_reading(path)) as connection, converted_errors(path):
        meta: dict[str, str] = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        rows = {name: connection.execute(sql).fetchone()[0] for name, sql in _COUNTS.items()}
        schema = connection.execute("PRAGMA user_version").fetchone()[0]
    start = meta.get("accounting_start_us")
    return LedgerFacts(
        path=str(path),
        cluster=meta.get("cluster"),
        schema=schema,
        file_bytes=path.stat().st_size,
        wal_bytes=_size(Path(f"{path}-wal")),
        free_bytes=shutil.disk_usage(path.parent).free,
        is_open=is_locked(path),
        accounting_start_us=int(start) if start else None,
        accounted_us=max((int(meta[key]) for key in _COMPLETE if key in meta), default=None),
        rows=rows,
        backups=sorted(each.name for each in path.parent.glob(f"{path.name}.before-*")),
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0

"""What a ledger file contains, and the state of its file."""

import shutil
import sqlite3
from glob import escape
from pathlib import Path
from typing import Final

from gputally.ledger.sqlite import daily_sums
from gputally.ledger.sqlite.copies import schema_of
from gputally.ledger.sqlite.file import is_locked, reading
from gputally.ledger.sqlite.schema import newest_schema, version_of
from gputally.ledger.stored import BackupFile, LedgerContents, LedgerFacts

_META: Final = (
    "SELECT key, CAST(value AS INTEGER) FROM meta WHERE key IN ('accounting_start_us', 'at_us', 'evaluated_us')"
)
_DAILY_ROWS: Final = "SELECT count(*) FROM daily_rows"
_PODS: Final = """
SELECT count(*), ifnull(sum(end_us IS NULL), 0), ifnull(sum(segments), 0) FROM pod_revisions r
WHERE number = (SELECT max(number) FROM pod_revisions WHERE pod = r.pod)
"""
_PREEMPTIONS: Final = "SELECT count(*) FROM preemptions"
_USAGE: Final = "SELECT (SELECT count(*) FROM usage_hours) + (SELECT count(*) FROM unallocated_usage)"


def facts_of(path: Path) -> LedgerFacts:
    """The state of the ledger at `path`, which other processes may write. Raises: LedgerError."""
    with reading(path) as connection:
        connection.execute("BEGIN")
        schema, newest = version_of(connection), newest_schema()
        cluster = cluster_of(connection)
        contents = contents_of(connection) if schema == newest else None
    return LedgerFacts(
        schema=schema,
        newest_schema=newest,
        cluster=cluster,
        size_bytes=path.stat().st_size,
        wal_bytes=_size(Path(f"{path}-wal")),
        free_bytes=shutil.disk_usage(path.parent).free,
        is_written=is_locked(path),
        contents=contents,
        backups=_backups(path),
    )


def cluster_of(connection: sqlite3.Connection) -> str | None:
    """The UID of the cluster that the ledger belongs to, in any schema."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'cluster'").fetchone()
    return row[0] if row else None


def accounted_us(connection: sqlite3.Connection) -> int | None:
    """The time (µs) up to which the ledger is complete, None before the first write."""
    return max((value for _, value in connection.execute(_META)), default=None)


def contents_of(connection: sqlite3.Connection) -> LedgerContents:
    """The contents of a ledger of the current schema."""

    def count(sql: str) -> int:
        found: int = connection.execute(sql).fetchone()[0]
        return found

    meta = dict(connection.execute(_META))
    detail_start = connection.execute(daily_sums.DETAIL_START).fetchone()
    pods, still_open, segments = connection.execute(_PODS).fetchone()
    return LedgerContents(
        accounting_start_us=meta.get("accounting_start_us"),
        accounted_us=accounted_us(connection),
        detail_start_us=detail_start[0] if detail_start else None,
        open_allocations=still_open,
        ended_allocations=pods - still_open,
        segments=segments,
        preemptions=count(_PREEMPTIONS),
        usage_rows=count(_USAGE),
        daily_rows=count(_DAILY_ROWS),
    )


def _backups(path: Path) -> list[BackupFile]:
    """The copies that upgrades and restores left."""
    found = sorted(path.parent.glob(f"{escape(path.name)}.before-*"))
    return [
        BackupFile(path=str(each), size_bytes=each.stat().st_size, schema=schema_of(each))
        for each in found
        if not each.name.endswith((".partial", "-wal", "-shm")) and each.is_file()
    ]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0

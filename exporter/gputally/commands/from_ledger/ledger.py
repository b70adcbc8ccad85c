"""Inspects a ledger: its state, whether it is damaged, and the rows of a query."""

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct, json

from gputally.commands.progress import ProgressLine, ending_at_once
from gputally.errors import LedgerDamaged
from gputally.formatting.amounts import file_size
from gputally.formatting.tables import write_rows
from gputally.formatting.times import age, instant
from gputally.ledger.open_stored import stored_ledger
from gputally.ledger.stored import BackupFile, LedgerContents, LedgerFacts
from gputally.model.printable import printable
from gputally.model.units import to_datetime

VERSION: Final = 1
"""Raised when a field is removed or changes its meaning; new fields do not change it."""
_WRITTEN: Final = {True: "yes, a process writes it", False: "no", None: "unknown: the lock file is not readable"}
CHECK_VERSION: Final = 1
"""Raised when a field is removed or changes its meaning; new fields do not change it."""
_REMEDY: Final = (
    "stop the aggregator and restore a backup with 'gputally restore': docs/runbooks/GputallyLedgerDamaged.md"
)


class LedgerRows(Struct, frozen=True, kw_only=True):
    """Allocations, segments and preemptions by their latest revision; rows of usage by hour; sums by day."""

    open_allocations: int
    ended_allocations: int
    segments: int
    preemptions: int
    usage_rows: int
    daily_rows: int


class InfoDocument(Struct, frozen=True, kw_only=True):
    """The state at one instant. Sizes are bytes; a value is None where it is unknown.

    `rows` and the times are None if the ledger has another schema than `readable_schema`.
    """

    version: int = VERSION
    at: datetime
    ledger: str
    cluster: str | None
    schema: int
    readable_schema: int
    size_bytes: int
    wal_bytes: int
    free_bytes: int
    is_written: bool | None
    accounting_start: datetime | None
    accounted_until: datetime | None
    detail_start: datetime | None
    rows: LedgerRows | None
    backups: list[BackupFile]


def info(ledger: str, *, output: str) -> int:
    """Print the state of the ledger. Raises: LedgerError."""
    stored = stored_ledger(ledger)
    document = _document(stored.name, stored.facts(), datetime.now(UTC))
    if output == "json":
        sys.stdout.write(json.format(json.encode(document), indent=2).decode() + "\n")
    else:
        sys.stdout.writelines(f"{name:<18}  {printable(text)}\n" for name, text in _lines(document))
    return 0


def _document(ledger: str, facts: LedgerFacts, now: datetime) -> InfoDocument:
    contents = facts.contents
    return InfoDocument(
        at=now,
        ledger=ledger,
        cluster=facts.cluster,
        schema=facts.schema,
        readable_schema=facts.newest_schema,
        size_bytes=facts.size_bytes,
        wal_bytes=facts.wal_bytes,
        free_bytes=facts.free_bytes,
        is_written=facts.is_written,
        accounting_start=_time(contents.accounting_start_us) if contents else None,
        accounted_until=_time(contents.accounted_us) if contents else None,
        detail_start=_time(contents.detail_start_us) if contents else None,
        rows=_rows(contents) if contents else None,
        backups=facts.backups,
    )


def _rows(contents: LedgerContents) -> LedgerRows:
    return LedgerRows(
        open_allocations=contents.open_allocations,
        ended_allocations=contents.ended_allocations,
        segments=contents.segments,
        preemptions=contents.preemptions,
        usage_rows=contents.usage_rows,
        daily_rows=contents.daily_rows,
    )


def _time(us: int | None) -> datetime | None:
    return None if us is None else to_datetime(us)


def _lines(document: InfoDocument) -> Iterator[tuple[str, str]]:
    yield "Ledger", document.ledger
    yield "Cluster", document.cluster or "none yet"
    yield "Schema", str(document.schema) + _schema_remark(document)
    yield "Size", f"{file_size(document.size_bytes)}, WAL {file_size(document.wal_bytes)}"
    yield "Free space", f"{file_size(document.free_bytes)} on its file system"
    yield "In use", _WRITTEN[document.is_written]
    if document.rows:
        yield from _contents(document, document.rows)
    for backup in document.backups:
        yield "Backup", f"{backup.path} ({file_size(backup.size_bytes)}, schema {backup.schema})"


def _schema_remark(document: InfoDocument) -> str:
    if document.schema == document.readable_schema:
        return ""
    remedy = (
        "the aggregator upgrades it when it starts"
        if document.schema < document.readable_schema
        else "use the newer gputally"
    )
    return f"; this gputally reads {document.readable_schema}: {remedy}"


def _contents(document: InfoDocument, rows: LedgerRows) -> Iterator[tuple[str, str]]:
    start, until = document.accounting_start, document.accounted_until
    yield "Accounting start", instant(start) if start else "not yet"
    if until:
        yield "Accounted until", f"{instant(until)}, {age((document.at - until).total_seconds())}"
    if document.detail_start:
        yield "Details from", f"{instant(document.detail_start)}; {rows.daily_rows:,} daily rows of what ended before"
    yield "Open allocations", f"{rows.open_allocations:,}"
    yield "Ended allocations", f"{rows.ended_allocations:,}"
    yield "Segments", f"{rows.segments:,}"
    yield "Preemptions", f"{rows.preemptions:,}"
    yield "Usage rows", f"{rows.usage_rows:,}"


class CheckDocument(Struct, frozen=True, kw_only=True):
    """The result of a check; `damage` is the first damage found."""

    version: int = CHECK_VERSION
    ledger: str
    damaged: bool
    damage: str | None
    size_bytes: int
    seconds: float


def check(ledger: str, *, output: str) -> int:
    """Check all of the ledger and print the result. Raises: LedgerDamaged, other LedgerErrors."""
    stored, started, damage = stored_ledger(ledger), time.monotonic(), None
    try:
        with ending_at_once(), ProgressLine() as progress:
            stored.check(progress)
    except LedgerDamaged as error:
        damage = error
    took, count = time.monotonic() - started, stored.size_bytes
    if output == "json":
        document = CheckDocument(
            ledger=stored.name,
            damaged=damage is not None,
            damage=str(damage) if damage else None,
            size_bytes=count,
            seconds=round(took, 3),
        )
        sys.stdout.write(json.encode(document).decode() + "\n")
    if damage:
        raise LedgerDamaged(f"{damage}; {_REMEDY}")
    if output == "table":
        sys.stdout.write(f"{stored.name}: no damage found, {file_size(count)} checked in {took:.1f} s\n")
    return 0


def query(ledger: str, sql: str, *, output: str, timeout_s: float) -> int:
    """Print the rows of the statement `sql`, or of the one on standard input if it is `-`. Raises: LedgerError."""
    text = sys.stdin.read() if sql == "-" else sql
    with ending_at_once(), stored_ledger(ledger).query(text, timeout_s=timeout_s) as (columns, rows):
        write_rows(sys.stdout, columns, rows, output=output)
        sys.stdout.flush()
    return 0

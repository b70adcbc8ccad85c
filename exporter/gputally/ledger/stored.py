"""A stored ledger as operators see it: its state, its integrity, its backups and queries, whatever stores it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from msgspec import Struct

Report = Callable[[str], None]
"""Receives what is done now, in a few words."""
Queried = tuple[list[str], Iterator[tuple[object, ...]]]
"""The names of the columns, and the rows."""


class LedgerContents(Struct, frozen=True, kw_only=True):
    """The contents, by the latest revision of each allocation. Times are µs, None before the first write.

    `daily_rows` have the sums of the allocations that were rolled up, which ended before `detail_start_us`; None if the
    ledger has all allocations.
    """

    accounting_start_us: int | None
    accounted_us: int | None
    detail_start_us: int | None
    open_allocations: int
    ended_allocations: int
    segments: int
    preemptions: int
    usage_rows: int
    daily_rows: int


class BackupFile(Struct, frozen=True, kw_only=True):
    """A copy of the ledger beside it."""

    path: str
    size_bytes: int
    schema: int


class LedgerFacts(Struct, frozen=True, kw_only=True):
    """The state of a ledger. `is_written` is None if this user may not know; `contents` is None for another schema."""

    schema: int
    newest_schema: int
    cluster: str | None
    size_bytes: int
    wal_bytes: int
    free_bytes: int
    is_written: bool | None
    contents: LedgerContents | None
    backups: list[BackupFile]


class Backup(NamedTuple):
    """A complete backup; `accounted_us` is None for a ledger that was never written."""

    size_bytes: int
    accounted_us: int | None


class Restored(NamedTuple):
    """The restored ledger; `kept` is where the previous one is now, None if there was none."""

    schema: int
    accounted_us: int | None
    kept: Path | None


class StoredLedger(Protocol):
    """A ledger that another process may write meanwhile. Its calls block; they raise LedgerError."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def size_bytes(self) -> int:
        """The size of what is stored."""

    def facts(self) -> LedgerFacts:
        """The state of the ledger."""

    def check(self, report: Report) -> None:
        """Check all of it. Raises: LedgerDamaged with the first damage found."""

    def back_up_to_file(self, target: Path, *, force: bool, check: bool, report: Report) -> Backup:
        """Copy it to `target`, which appears only when the copy is complete and checked; `force` overwrites it.

        Without `check`, a damaged ledger is copied too.
        """

    def back_up_to_stream(self, stream: BinaryIO, *, check: bool, report: Report) -> Backup:
        """Write a copy to `stream`, when it is complete and checked."""

    def restore(self, source: Path | BinaryIO, *, force: bool, report: Report) -> Restored:
        """Replace it by its backup `source`, once that is complete and checked. The previous ledger is kept.

        `force` replaces the ledger of another cluster, or what is no ledger. Raises: LedgerError if another process
        writes it; then it is as before.
        """

    def query(self, sql: str, *, timeout_s: float) -> AbstractContextManager[Queried]:
        """The result of one statement, which cannot change anything; rows are read as they are consumed."""

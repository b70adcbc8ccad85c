"""Reads rows of a ledger in one SQLite file, in short transactions."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar

from gputally.errors import DetailRolledUp, LedgerError
from gputally.ledger.records import LedgerState, Window
from gputally.ledger.sqlite import queries
from gputally.ledger.sqlite.record_starts import later_records
from gputally.ledger.sqlite.schema import connect_reading
from gputally.ledger.sqlite.segment_rows import Row
from gputally.ledger.sqlite.sqlite_errors import converted_errors
from gputally.model.units import to_datetime

Found = TypeVar("Found")
_LAST: Final = b""
"""Sorts after every text."""


class _Page(NamedTuple):
    """Pods whose UID is in (after, upto]."""

    after: str
    upto: str | bytes


class SqliteRows:
    """An open file, and what the sums of a reader share."""

    page_pods = 5_000
    """Pods read in one transaction: a longer one would prevent SQLite from reusing the WAL."""

    def __init__(self, path: Path, connection: Connection | None = None) -> None:
        """Read `path`, through `connection` if it is open already.

        Raises: LedgerError if it is not a ledger with the current schema.
        """
        self.path = path
        self._connection = connection or connect_reading(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self._connection.close()

    def state(self) -> LedgerState:
        """See `LedgerReader.state`. Raises: LedgerError before the start of accounting."""
        meta: dict[str, str] = dict(self._rows(queries.META))
        if "accounting_start_us" not in meta:
            raise LedgerError(f"{self.path}: contains no accounting yet; wait until its aggregator is ready")
        accounted_us = max(int(meta[key]) for key in ("accounting_start_us", "at_us", "evaluated_us") if key in meta)
        return LedgerState(
            cluster=meta.get("cluster"),
            accounting_start_us=int(meta["accounting_start_us"]),
            accounted_us=accounted_us,
            detail_start_us=int(meta["detail_start_us"]) if "detail_start_us" in meta else None,
            later=later_records(meta, self._rows, accounted_us=accounted_us),
        )

    def _bounds(self, window: Window) -> dict[str, int]:
        return {"start": window.start_us, "end": window.end_us, "accounted": self.state().accounted_us}

    def _detailed(self, window: Window) -> dict[str, int]:
        """The bounds of a window of which single allocations are known. Raises: DetailRolledUp."""
        detail_us = self.state().detail_start_us
        if detail_us is not None and window.start_us < detail_us:
            raise DetailRolledUp(
                f"single allocations and hours are known only from {to_datetime(detail_us):%Y-%m-%d} UTC on; use a "
                "later period, or a backup from before"
            )
        return self._bounds(window)

    def _undisturbed(self, read: Callable[[], Found]) -> Found:
        """The result of a read that sees each allocation once.

        Allocations that are rolled up while their pages are read would count twice or not at all. Then the read is
        repeated in one transaction, at the price of a larger WAL.
        """
        before, found = self._rows(queries.ROLL_UPS), read()
        if self._rows(queries.ROLL_UPS) == before:
            return found
        self._rows("BEGIN")
        try:
            return read()
        finally:
            self._rows("ROLLBACK")

    def _pages(self) -> Iterator[_Page]:
        """Pages of all pods, by UID."""
        after = ""
        while found := self._rows(queries.NEXT_PAGE, {"after": after, "pods": self.page_pods - 1}):
            [(upto,)] = found
            yield _Page(after, upto)
            after = upto
        yield _Page(after, _LAST)

    def _rows(self, sql: str, bounds: Mapping[str, Any] | None = None, page: _Page | None = None) -> list[Row]:
        """All rows of one statement, which is one transaction."""
        values = {**(bounds or {}), **(page._asdict() if page else {})}
        with converted_errors(self.path):
            return self._connection.execute(sql, values).fetchall()

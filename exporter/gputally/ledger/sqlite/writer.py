"""The ledger in one SQLite file: WAL, one writer, one transaction per step of the accounting."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import starmap
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

import msgspec

from gputally.accounting.changes import Changes, Saved, new_accounts
from gputally.accounting.fleet.fleet import documents
from gputally.accounting.totals.label_limiter import KnownValue
from gputally.accounting.totals.series import Labels, Series
from gputally.accounting.totals.total import Lines, Total
from gputally.errors import LedgerError
from gputally.ledger.closed_period import ClosedPeriod
from gputally.ledger.records import IMPORTED
from gputally.ledger.sqlite import integrity, usage
from gputally.ledger.sqlite.allocation_tables import AllocationTables
from gputally.ledger.sqlite.closed_periods import append_period
from gputally.ledger.sqlite.file import Lock, connect
from gputally.ledger.sqlite.integrity import converted_errors, mark
from gputally.ledger.sqlite.reconciled_sums import increased, minus, stored_sums, sum_rows, touched_sums
from gputally.ledger.sqlite.retention import RollUp, release_pages
from gputally.ledger.sqlite.schema import missing_part
from gputally.ledger.sqlite.victims import FINISH_DELIVERY
from gputally.ledger.sqlite.waits import keep_start_of_waits
from gputally.ledger.tables.statements import insert_missing, select, upsert
from gputally.ledger.tables.working import (
    KNOWN_VALUES,
    META,
    SERIES,
    WATCHES,
    KnownValueRow,
    SeriesRow,
    WatchRow,
)
from gputally.ledger.written import working_state
from gputally.ledger.written.step import STEP
from gputally.ledger.written.waits import prices_of_waits
from gputally.model.allocation import Terms
from gputally.model.kube.kinds import Kind
from gputally.model.node_record import NodeRecord
from gputally.model.observation import Checkpoint
from gputally.model.pod_record import PodRecord

Record = TypeVar("Record")
_BEGIN_META: Final = insert_missing(META)
_UPSERT_META: Final = upsert(META)
_WATCHES: Final = select(WATCHES)
_KNOWN_VALUES: Final = select(KNOWN_VALUES)
_SERIES: Final = select(SERIES)


class SqliteLedger:
    """See `Ledger`. The file belongs to one cluster; `bind` rejects others."""

    def __init__(self, path: Path) -> None:
        """Lock and open `path`. Raises: LedgerError if that fails; the file is left untouched."""
        self.path = path
        self._lock = Lock(path)
        self._lock.acquire()
        try:
            self._connection = connect(path)
            self._is_marked = self._marked()
            self._allocations = AllocationTables(self._connection)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        try:
            self._connection.close()
        finally:
            self._lock.release()

    def bind(self, cluster: str) -> None:
        """See `Ledger.bind`."""
        with converted_errors(self.path):
            self._connection.execute(_BEGIN_META, META.new("cluster", cluster))
            bound = self._meta("cluster")
        if bound != cluster:
            raise LedgerError(
                f"{self.path}: belongs to the cluster {bound}, this one is {cluster}; use one ledger per cluster"
            )

    def saved(self, *, now_us: int) -> Saved:
        """See `Ledger.saved`."""
        with converted_errors(self.path):
            try:
                return self._saved(now_us)
            except ValueError as error:
                raise LedgerError(
                    f"{self.path}: has data that this gputally cannot read ({error}); run the version that wrote it"
                ) from None

    def write(self, changes: Changes) -> Lines:
        """See `Ledger.write`."""
        with converted_errors(self.path), self._transaction():
            is_first = self._meta("accounting_start_us") is None
            start_us = changes.accounting_start_us if is_first else changes.at_us
            keep_start_of_waits(self._connection, start_us=start_us, has_waits=changes.has_waits)
            sums = self._write(changes, is_first=is_first)
        self._is_marked = self._is_marked or mark(self.path)
        return minus(changes.live, {total: sums[total] for total in changes.live})

    def close_period(self, period: ClosedPeriod) -> None:
        """See `Ledger.close_period`."""
        with converted_errors(self.path), self._transaction():
            append_period(self._connection, period)

    def finish_delivery(self, job_preemption: str, result: str, *, at_us: int) -> None:
        """See `Ledger.finish_delivery`."""
        with converted_errors(self.path), self._transaction():
            self._connection.execute(FINISH_DELIVERY, (result, at_us, job_preemption))

    def check(self) -> Iterator[None]:
        """See `Ledger.check`."""
        return integrity.slices(self.path, missing_part)

    def roll_up(self, before_us: int) -> Iterator[int]:
        """See `Ledger.roll_up`."""
        roll_up = RollUp(self._connection, self._transaction, self._allocations.finished, before_us=before_us)
        with converted_errors(self.path):
            for _ in roll_up.steps():
                yield roll_up.pods
            for _ in release_pages(self._connection, self._transaction):
                yield roll_up.pods

    def add_up(self) -> Iterator[int]:
        """See `Ledger.add_up`."""
        with converted_errors(self.path):
            yield from self._allocations.finished.steps(self._transaction)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
            self._allocations.trim()
        except BaseException:
            self._allocations.forget()
            if self._connection.in_transaction:  # a full disk may have rolled back already
                self._connection.execute("ROLLBACK")
            raise

    def _saved(self, now_us: int) -> Saved:
        start_us = self._meta("accounting_start_us")
        if start_us is None:
            return new_accounts(now_us)
        execute = self._connection.execute
        watches = starmap(WatchRow, execute(_WATCHES))
        return Saved(
            accounting_start_us=int(start_us),
            evaluated_us=int(self._meta("evaluated_us") or start_us),
            at_us=int(self._meta("at_us") or start_us),
            resumed_us=now_us,
            pods=self._pods("pod"),
            departed=self._pods("departed"),
            assignment_usage=tuple(map(usage.assignment_hour, execute(usage.SELECT_ASSIGNED))),
            unallocated_usage=tuple(map(usage.unallocated_hour, execute(usage.SELECT_UNALLOCATED))),
            nodes=self._working("node", NodeRecord),
            documents={name: found for name, type_ in documents().items() if (found := self._working(name, type_))},
            series=dict(self._series()),
            known_values={
                (each.label, each.value): KnownValue(each.grew_us, each.evicted_us)
                for each in starmap(KnownValueRow, execute(_KNOWN_VALUES))
            },
            resumes={
                Kind(each.kind): Checkpoint(version=each.version, at_us=each.at_us, rules=each.rules)
                for each in watches
            },
        )

    def _write(self, changes: Changes, *, is_first: bool) -> Lines:
        """Write all rows, and return the ledger's sums of them."""
        stored, before = stored_sums(self._connection), touched_sums(self._connection, changes)
        allocated = self._allocations.append(changes)
        self._write_rows(changes)
        more = minus(touched_sums(self._connection, changes), before) | allocated
        sums = increased(stored, more)
        marks = [("evaluated_us", str(changes.evaluated_us)), ("at_us", str(changes.at_us))]
        marks += set(sum_rows(sums)) - (set() if is_first else set(sum_rows(stored)))  # most stay as they are
        self._connection.executemany(_UPSERT_META, marks)
        self._connection.execute(_BEGIN_META, META.new("accounting_start_us", str(changes.accounting_start_us)))
        return sums

    def _write_rows(self, changes: Changes) -> None:
        self._allocations.store_prices(filter(None, changes.asset_prices.values()))
        self._allocations.store_prices(prices_of_waits(changes))
        for statement, rows in STEP:
            self._connection.executemany(statement, rows(changes))

    def _marked(self) -> bool:
        """Mark a ledger with an accounting. Imported jobs need no marker: they can be imported again."""
        try:
            if self._meta("accounting_start_us") is None:
                return False
            return self._meta("cluster") == IMPORTED or mark(self.path)
        except BaseException:
            self._connection.close()
            raise

    def _meta(self, key: str) -> str | None:
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def _pods(self, kind: str) -> tuple[PodRecord, ...]:
        segments = self._allocations.of_working(kind)
        terms = self._histories(kind)
        return tuple(
            working_state.with_history(record, segments.get(record.uid, ()), terms.get(record.uid, ()))
            for record in self._working(kind, PodRecord)
        )

    def _histories(self, kind: str) -> dict[str, list[Terms]]:
        decode, found = msgspec.json.Decoder(Terms).decode, dict[str, list[Terms]]()
        for uid, entry in self._connection.execute(
            "SELECT uid, entry FROM histories WHERE kind = ? ORDER BY uid, ordinal", (kind,)
        ):
            found.setdefault(uid, []).append(decode(entry))
        return found

    def _working(self, kind: str, type_: type[Record]) -> tuple[Record, ...]:
        decoder = msgspec.json.Decoder(type_)
        documents = self._connection.execute("SELECT document FROM working WHERE kind = ? ORDER BY uid", (kind,))
        return tuple(decoder.decode(document) for (document,) in documents)

    def _series(self) -> list[tuple[tuple[Total, Labels], Series]]:
        return [
            (
                (Total(each.family), tuple(json.loads(each.labels))),
                Series(each.created_us, int(each.a), int(each.b), int(each.floor), each.floor_us, each.shown_us),
            )
            for each in starmap(SeriesRow, self._connection.execute(_SERIES))
        ]

"""A ledger of imported jobs, in an SQLite file of its own."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from gputally.accounting.changes import Changes
from gputally.errors import LedgerError
from gputally.ledger.records import IMPORTED, Window
from gputally.ledger.sqlite.integrity import converted_errors
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.ledger.tables.allocations import IMPORTED as IMPORTED_ROWS
from gputally.ledger.tables.statements import insert_missing, listed, on_conflict
from gputally.ledger.tables.working import META
from gputally.model.pod_record import PodRecord

_KNOWN: Final = """
SELECT p.uid, i.digest, (SELECT max(revision) FROM pod_revisions WHERE pod = p.id)
FROM json_each(?) AS wanted CROSS JOIN pods p ON p.uid = wanted.value CROSS JOIN imported i ON i.pod = p.id
"""
_KEEP: Final = f"""
INSERT INTO imported ({listed(IMPORTED_ROWS.fields)}) SELECT id, ? FROM pods WHERE uid = ? {on_conflict(IMPORTED_ROWS)}
"""  # noqa: S608 (declared names)
_START: Final = """
INSERT INTO meta (key, value) VALUES ('accounting_start_us', :start)
ON CONFLICT (key) DO UPDATE SET value = :start WHERE CAST(value AS INTEGER) > CAST(:start AS INTEGER)
"""


class Imported(NamedTuple):
    """An allocation from a row with this hash."""

    digest: int
    revision: int


class SqliteImportLedger(SqliteLedger):
    """Allocations that no aggregator accounts. Raises: LedgerError for the ledger of a cluster."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._zone: tuple[str, str] | None = None
        try:
            self.bind(IMPORTED)
        except LedgerError:
            self.__exit__(None, None, None)
            raise LedgerError(
                f"{path}: is the ledger of a cluster; import into a file of its own, and report both with --history"
            ) from None

    def complete_us(self) -> int:
        """The end of the windows that were imported; 0 before the first."""
        with converted_errors(self.path):
            return int(self._meta("at_us") or 0)

    def known(self, uids: Iterable[str]) -> dict[str, Imported]:
        """What was imported before, by UID."""
        with converted_errors(self.path):
            found = self._connection.execute(_KNOWN, (json.dumps(tuple(uids)),))
            return {uid: Imported(digest, revision) for uid, digest, revision in found}

    def expect_zone(self, source: str, zone: str) -> None:
        """The local times of a source are read in one time zone: in another, its runs would count twice.

        The first jobs that are added determine it. Raises: LedgerError for another one than theirs.
        """
        self._zone = f"time_zone {source}", zone
        with converted_errors(self.path):
            known = self._meta(self._zone[0])
        if known not in (None, zone):
            raise LedgerError(
                f"{self.path}: has jobs of '{source}' by --time-zone {known}; by {zone} they would start at other "
                "times and count twice. Import into a new file, or another cluster with --source"
            )

    def add(self, records: Mapping[str, PodRecord], digests: Mapping[str, int], window: Window) -> None:
        """Add new revisions of allocations, all or none. From now on the ledger covers at least `window`."""
        with converted_errors(self.path), self._transaction():
            known = self._meta("accounting_start_us")
            start_us, until_us = int(known or window.start_us), max(window.end_us, int(self._meta("at_us") or 0))
            self._write(
                Changes(accounting_start_us=start_us, evaluated_us=until_us, at_us=until_us, revisions=dict(records)),
                is_first=known is None,
            )
            self._connection.executemany(_KEEP, [(digests[uid], uid) for uid in records])
            self._connection.execute(_START, {"start": str(window.start_us)})
            if self._zone:
                self._connection.execute(insert_missing(META), self._zone)

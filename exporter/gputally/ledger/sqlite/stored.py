"""A ledger file as operators see it."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from gputally.ledger.sqlite.backup import back_up_to_file, back_up_to_stream
from gputally.ledger.sqlite.file import reading
from gputally.ledger.sqlite.info import facts_of
from gputally.ledger.sqlite.integrity import examine
from gputally.ledger.sqlite.query import queried
from gputally.ledger.sqlite.restore import restore
from gputally.ledger.stored import Backup, LedgerFacts, Queried, Report, Restored


class SqliteStoredLedger:
    """See `StoredLedger`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)

    @property
    def size_bytes(self) -> int:
        """See `StoredLedger.size_bytes`: the file without its WAL."""
        return self._path.stat().st_size

    def facts(self) -> LedgerFacts:
        """See `StoredLedger.facts`."""
        return facts_of(self._path)

    def check(self, report: Report) -> None:
        """See `StoredLedger.check`."""
        with reading(self._path) as connection:
            examine(connection, self._path, report)

    def back_up_to_file(self, target: Path, *, force: bool, check: bool, report: Report) -> Backup:
        """See `StoredLedger.back_up_to_file`."""
        return back_up_to_file(self._path, target, force=force, check=check, report=report)

    def back_up_to_stream(self, stream: BinaryIO, *, check: bool, report: Report) -> Backup:
        """See `StoredLedger.back_up_to_stream`."""
        return back_up_to_stream(self._path, stream, check=check, report=report)

    def restore(self, source: Path | BinaryIO, *, force: bool, report: Report) -> Restored:
        """See `StoredLedger.restore`."""
        return restore(source, self._path, force=force, report=report)

    def query(self, sql: str, *, timeout_s: float) -> AbstractContextManager[Queried]:
        """See `StoredLedger.query`."""
        return queried(self._path, sql, timeout_s=timeout_s)

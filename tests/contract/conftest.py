"""Ledger back-ends on a fresh ledger, with a way to change its rows directly."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from gputally.ledger.open import open_reader
from gputally.ledger.open_to_write import open_ledger
from gputally.ledger.protocol import Ledger, LedgerReader


@dataclass(frozen=True)
class BackEnd:
    """`open` opens the ledger as a new process does, `read` opens a reader, `tamper` runs SQL on it directly."""

    open: Callable[[], Ledger]
    read: Callable[[], LedgerReader]
    tamper: Callable[[str], None]


def sqlite(folder: Path) -> BackEnd:
    path = folder / "ledger.db"

    def tamper(sql: str) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(sql)

    return BackEnd(open=lambda: open_ledger(str(path)), read=lambda: open_reader(f"sqlite:///{path}"), tamper=tamper)


BACK_ENDS = {"sqlite": sqlite}


@pytest.fixture(params=BACK_ENDS)
def back_end(request: pytest.FixtureRequest, tmp_path: Path) -> BackEnd:
    return BACK_ENDS[request.param](tmp_path)


@pytest.fixture
def ledger(back_end: BackEnd) -> Iterator[Ledger]:
    with back_end.open() as ledger:
        yield ledger


@pytest.fixture
def reader(back_end: BackEnd, ledger: Ledger) -> Iterator[LedgerReader]:  # noqa: ARG001 - keeps it open
    """A reader that is open while the ledger is written."""
    with back_end.read() as reader:
        yield reader

"""Starts of a ledger that are killed at every file operation and SQL statement: `python -m ... FOLDER [LEDGER]`.

They start with a copy of the closed LEDGER, which they upgrade, or with none. Each killed start leaves its own folder,
numbered; the last one runs to its end. Writes how many there are.
"""

import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from gputally.ledger.sqlite.writer import SqliteLedger
from tests.contract.records import pod, segment, step
from tests.fakes.killed_restores import CHANGES
from tests.unit.ledger.next_schema import begin_next_version

CONNECT = sqlite3.connect


def main() -> None:
    folder, *ledgers = map(Path, sys.argv[1:])
    if ledgers:
        begin_next_version(pytest.MonkeyPatch())
    for number in count():
        place = folder / str(number)
        place.mkdir()
        for ledger in ledgers:
            shutil.copyfile(ledger, place / "l.db")
        if not killed(place / "l.db", at=number):
            sys.stdout.write(str(number))
            return


def killed(path: Path, *, at: int) -> bool:
    """Run a start and the first two writes in a child that is killed before the step number `at`."""
    child = os.fork()
    if not child:
        kill_at(at, path.parent)
        with SqliteLedger(path) as ledger:
            ledger.bind("uid-1")
            ledger.write(step(pod("a", segment(1000, None))))
            ledger.write(step(pod("b", segment(1000, None))))
        os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


def kill_at(at: int, folder: Path) -> None:
    """Kill this process before the step number `at`: a file operation in the folder, or an SQL statement."""
    numbers = count()

    def happened(_: object = None) -> None:
        if next(numbers) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def heard(event: str, arguments: tuple[object, ...]) -> None:
        if event in CHANGES and any(str(folder) in str(each) for each in arguments):
            happened()

    sys.addaudithook(heard)
    sqlite3.connect = traced(happened)  # type: ignore[assignment] # the same, with a trace


def traced(happened: Callable[[object], None]) -> Callable[..., sqlite3.Connection]:
    def connect(*arguments: Any, **named: Any) -> sqlite3.Connection:  # noqa: ANN401 - those of sqlite3.connect
        connection: sqlite3.Connection = CONNECT(*arguments, **named)
        connection.set_trace_callback(happened)
        return connection

    return connect


if __name__ == "__main__":
    main()

"""A ledger gives space back when allocations are rolled up, whichever version created it."""

import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from gputally.ledger.open import open_reader
from gputally.ledger.records import Window
from gputally.ledger.sqlite import free_pages
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.units import US_PER_DAY
from tests.contract.records import pod, segment, step
from tests.unit.ledger.older_ledger import written_by

PODS = 3_000


class DiskUsage(NamedTuple):
    free: int


@pytest.fixture(autouse=True)
def _no_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few free pages stay in small files."""
    monkeypatch.setattr(free_pages, "_KEPT", 8)


def filled(path: Path) -> Path:
    """A ledger of many allocations of one job on the first day."""
    with SqliteLedger(path) as ledger:
        found = [pod(f"pod-{n}", segment(1000 + n, 1500 + n), segment(1500 + n, 2000 + n)) for n in range(PODS)]
        ledger.write(step(*found, at=5000))
    return path


def rolled(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        ledger.prepare_retention()
        for _ in ledger.roll_up(US_PER_DAY):
            pass


def total(path: Path) -> int:
    """All GPU-time."""
    with open_reader(str(path)) as reader:
        return sum(each.gpu_time for each in reader.allocated(Window(0, US_PER_DAY), ("tenant",)))


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        [found] = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(found)


def make_unable_to_shrink(path: Path) -> None:
    """As older versions created it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = 0")
        connection.execute("VACUUM")


def test_the_file_shrinks_and_the_sums_stay(tmp_path: Path) -> None:
    path = filled(tmp_path / "ledger.db")
    size, before = path.stat().st_size, total(path)

    rolled(path)

    assert (total(path), count(path, "pods"), count(path, "daily_rows")) == (before, 0, 1)
    assert path.stat().st_size < 0.6 * size


def test_a_file_of_an_older_version_is_rebuilt_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = filled(tmp_path / "ledger.db")
    make_unable_to_shrink(path)
    size, before = path.stat().st_size, total(path)

    with caplog.at_level(logging.INFO):
        rolled(path)
        rolled(path)

    assert total(path) == before
    assert path.stat().st_size < 0.6 * size
    assert [each.getMessage() for each in caplog.records] == [
        f"{path}: is rebuilt once, so that --ledger.retention can reduce its size ({size >> 20} MiB)"
    ]


def test_without_the_space_to_rebuild_it_the_space_is_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = filled(tmp_path / "ledger.db")
    make_unable_to_shrink(path)
    size = path.stat().st_size
    monkeypatch.setattr(shutil, "disk_usage", lambda _: DiskUsage(2 * size - 1))

    rolled(path)

    assert "the space that --ledger.retention frees is reused; free some space and restart" in caplog.text
    assert (path.stat().st_size, count(path, "pods")) == (size, 0)


def test_a_file_that_cannot_be_rebuilt_does_not_prevent_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = filled(tmp_path / "ledger.db")
    make_unable_to_shrink(path)
    monkeypatch.setenv("SQLITE_TMPDIR", "/as before")
    with SqliteLedger(path) as ledger, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        ledger._connection.execute("PRAGMA busy_timeout = 1")
        ledger.prepare_retention()
        other.rollback()
        assert os.environ["SQLITE_TMPDIR"] == "/as before"
        assert [0, *ledger.roll_up(US_PER_DAY)][-1] == PODS

    assert "cannot be rebuilt: database is locked; until that works at a start" in caplog.text


@pytest.mark.parametrize("version", [1, 3])
def test_allocations_of_older_schemas_are_rolled_up_too(tmp_path: Path, version: int) -> None:
    path = tmp_path / "ledger.db"
    written_by(version, path)
    with SqliteLedger(path):
        pass
    before = total(path)
    older = count(path, "old_allocations")

    rolled(path)

    assert older > count(path, "old_allocations") == 0
    assert total(path) == before > 0


KILLED = """
import sys
from pathlib import Path
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.units import US_PER_DAY
with SqliteLedger(Path(sys.argv[1])) as ledger:
    for _ in ledger.roll_up(US_PER_DAY):
        print(flush=True)
"""


def test_a_roll_up_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    path, chance = filled(tmp_path / "ledger.db"), Random(1)
    before = total(path)

    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE) as process:
            assert process.stdout
            for _ in range(chance.randint(1, 12)):
                process.stdout.readline()
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert total(path) == before
    assert 0 < count(path, "pods") < PODS
    rolled(path)
    assert (total(path), count(path, "pods"), count(path, "rolled_pods")) == (before, 0, PODS)
    with SqliteLedger(path) as ledger:
        list(ledger.check())

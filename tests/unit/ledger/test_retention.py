"""A ledger gives space back when allocations are rolled up, whichever version created it."""

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
from gputally.ledger.sqlite import retention
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.units import US_PER_DAY
from tests.contract.records import pod, segment, step

PODS = 3_000


class DiskUsage(NamedTuple):
    free: int


@pytest.fixture(autouse=True)
def _no_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few free pages stay in small files."""
    monkeypatch.setattr(retention, "_KEPT", 8)


def filled(path: Path) -> Path:
    """A ledger of many allocations of one job on the first day."""
    with SqliteLedger(path) as ledger:
        found = [pod(f"pod-{n}", segment(1000 + n, 1500 + n), segment(1500 + n, 2000 + n)) for n in range(PODS)]
        ledger.write(step(*found, at=5000))
    return path


def rolled(path: Path) -> None:
    with SqliteLedger(path) as ledger:
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


def test_the_file_shrinks_and_the_sums_stay(tmp_path: Path) -> None:
    path = filled(tmp_path / "ledger.db")
    size, before = path.stat().st_size, total(path)

    rolled(path)

    assert (total(path), count(path, "pods"), count(path, "daily_rows")) == (before, 0, 1)
    assert path.stat().st_size < 0.6 * size


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

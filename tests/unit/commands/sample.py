"""A small ledger with rows of every kind, and how to run commands on it."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from gputally import cli
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.contract.records import PREEMPTION, line, pod, segment, step, us
from tests.contract.test_usage import ASSIGNMENT_HOUR, UNALLOCATED_HOUR, reported

CLUSTER = "cluster-1"
ENDED = [pod(f"ended-{number}", segment(1000, 1010), segment(1010, 1020)) for number in range(300)]
OPEN = [
    pod(f"open-{number}", segment(1000, 1010), segment(1010, None), end_us=None, end_by=None, gap=None)
    for number in range(3)
]
LATEST_S = 6000


class Result(NamedTuple):
    """What a command returned and printed."""

    status: int
    out: str
    err: str


def fill(ledger: SqliteLedger, cluster: str = CLUSTER) -> None:
    """300 ended allocations and 3 open ones, 606 segments, a preemption and 2 rows of usage."""
    ledger.bind(cluster)
    ledger.write(step(*ENDED, *OPEN, pods={each.uid: each for each in OPEN}, live=line(*ENDED, *OPEN)))
    ledger.write(reported(ASSIGNMENT_HOUR, UNALLOCATED_HOUR))
    ledger.write(step(at=LATEST_S, victims={"a": PREEMPTION}, live=None))


@contextmanager
def in_use(path: Path, cluster: str = CLUSTER) -> Iterator[SqliteLedger]:
    """A filled ledger that this process writes."""
    with SqliteLedger(path) as ledger:
        fill(ledger, cluster)
        yield ledger


def closed(path: Path, cluster: str = CLUSTER) -> Path:
    """A filled ledger that nothing uses; even the files beside it are gone."""
    with in_use(path, cluster):
        pass
    _remove_beside(path)
    return path


def _remove_beside(path: Path) -> None:
    for suffix in (".lock", ".begun"):
        Path(f"{path}{suffix}").unlink()


def abandoned(path: Path) -> Path:
    """A filled ledger as a killed process left it, most of it in the WAL."""
    source = path.with_name("source.db")
    with in_use(source):
        for suffix in ("", "-wal", "-shm"):
            shutil.copyfile(f"{source}{suffix}", f"{path}{suffix}")
    source.unlink()
    _remove_beside(source)
    assert Path(f"{path}-wal").stat().st_size > 100_000
    return path


def pods(path: Path) -> set[str]:
    """The pods in the ledger. Reads a copy, since SQLite would leave a WAL."""
    folder = path.parent / "read"
    folder.mkdir(exist_ok=True)
    for suffix in ("", "-wal", "-shm"):
        if Path(f"{path}{suffix}").exists():
            shutil.copyfile(f"{path}{suffix}", folder / f"copy.db{suffix}")
    with closing(sqlite3.connect(folder / "copy.db")) as connection:
        found = {uid for (uid,) in connection.execute("SELECT uid FROM pods")}
    shutil.rmtree(folder)
    return found


def dump(path: Path) -> list[str]:
    """All of its contents as SQL."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return list(connection.iterdump())


def change(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)


def damage(path: Path) -> None:
    """Overwrite a page in the middle, as a failing disk does."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(b"\xff" * 4096)


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


class Runner:
    """Runs `gputally ARGUMENTS` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Result:
        self._capsys.readouterr()
        status = cli.main(list(map(str, arguments)))
        captured = self._capsys.readouterr()
        return Result(status, captured.out, captured.err)


def accounted(seconds: int) -> int:
    return us(seconds)

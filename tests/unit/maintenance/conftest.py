"""A ledger with pods, and the command line in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from gputally.accounting.changes import Changes
from gputally.cli import main
from gputally.ledger.sqlite.sqlite_ledger import SqliteLedger
from tests.contract.records import pod, segment, step

CLUSTER = "cluster-1"
PODS = 20


def revised(revision: int) -> Changes:
    """All pods, each as many seconds long as its revision."""
    return step(*(pod(f"uid-{n}", segment(1000, 1000 + revision), revision=revision) for n in range(PODS)))


def written(path: Path, *, cluster: str = CLUSTER, revision: int = 1) -> Path:
    """A closed ledger."""
    with SqliteLedger(path) as ledger:
        ledger.bind(cluster)
        ledger.write(revised(revision))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """All files but those that SQLite's readers create beside a ledger, and that hold no data then."""
    files = {each.name: each.read_bytes() for each in folder.iterdir()}
    return {name: text for name, text in files.items() if text and not name.endswith("-shm")}


class Ran(NamedTuple):
    """The exit status of a command, and what it wrote."""

    status: int
    out: str
    err: str


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return written(tmp_path / "gputally.db")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run `gputally ARGUMENTS`."""

    def ran(*arguments: object) -> Ran:
        status = main([str(each) for each in arguments])
        return Ran(status, *capsys.readouterr())

    return ran

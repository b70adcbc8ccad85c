"""The program for auditors in docs/closing.md finds what gputally finds, without gputally."""

import subprocess
import sys
from pathlib import Path

import pytest

from gputally.ledger.closed_period import ClosedPeriod
from gputally.ledger.open import open_reader
from gputally.ledger.records import Window
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.contract.records import pod, segment, step, us
from tests.core.closings import close
from tests.docs.pages import TEXTS, blocks
from tests.unit.commands.sample import change

(PROGRAM,) = blocks(TEXTS["docs/closing.md"], "python")


@pytest.fixture
def closed(tmp_path: Path) -> list[ClosedPeriod]:
    """Three periods; the second has a correction, and a tenant whose name JSON escapes."""
    path = tmp_path / "backup.db"
    with SqliteLedger(path) as ledger, open_reader(str(path)) as reader:
        ledger.bind("cluster-1")
        ledger.write(
            step(pod("a", segment(1000, 4000)), pod("b", segment(1500, 2500, tenant='m\u00fc"ller', price=None)))
        )
        first = close(ledger, reader, Window(us(1000), us(2000)), name="first")
        ledger.write(step(pod("a", segment(1000, 1900), segment(1900, 4000), revision=2), live=None))
        ledger.write(step(pod("b", segment(1600, 2500), revision=2), live=None))
        second, third = (
            close(ledger, reader, Window(us(start), us(start + 1000)), name=name)
            for start, name in ((2000, "second"), (3000, "third"))
        )
    return [first, second, third]


def verdicts(folder: Path) -> list[list[str]]:
    command = [sys.executable, "-I", "-c", PROGRAM]
    out = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    return [line.split() for line in out.splitlines()]


def test_an_auditor_computes_the_same_hashes(tmp_path: Path, closed: list[ClosedPeriod]) -> None:
    assert verdicts(tmp_path) == [[each.name, each.hash, "verified"] for each in closed]
    assert len(closed[1].lines) > 1


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("UPDATE closed_lines SET gpu_time = gpu_time || '0' WHERE period = 2", ["verified", "CHANGED", "verified"]),
        ("UPDATE closed_periods SET zone = 'CET' WHERE number = 1", ["CHANGED", "verified", "verified"]),
        ("DELETE FROM closed_periods WHERE number = 2", ["verified", "CHANGED"]),
    ],
)
def test_an_auditor_sees_which_period_was_changed(
    tmp_path: Path, closed: list[ClosedPeriod], sql: str, expected: list[str]
) -> None:
    assert closed
    change(tmp_path / "backup.db", sql)

    assert [verdict for *_, verdict in verdicts(tmp_path)] == expected

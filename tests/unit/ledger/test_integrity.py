"""A ledger opens by what was written last, and is looked through beside the work."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gputally.errors import LedgerDamaged, LedgerUnwritable
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.pod_record import PodRecord
from tests.contract.records import BALANCED, line, pod, segment, step

PODS = 6_000
PAGE = 4096


def alive(number: int) -> PodRecord:
    return pod(f"pod-{number}", segment(1000, 1010), segment(1010, None))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of many finished allocations and three that last."""
    path = tmp_path / "ledger.db"
    with SqliteLedger(path) as ledger:
        ended = [pod(f"old-{number}", segment(1000, 1010), segment(1010, 1020)) for number in range(PODS)]
        ledger.write(step(*ended))
        last = [alive(number) for number in range(3)]
        ledger.write(step(*last, pods={each.uid: each for each in last}, live=line(*ended, *last)))
    return path


def tamper(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)


def looked_through(ledger: SqliteLedger) -> int:
    return sum(1 for _ in ledger.check())


def test_a_sound_ledger_is_looked_through_in_many_small_steps(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        assert looked_through(ledger) > 20


def test_an_empty_ledger_is_sound(tmp_path: Path) -> None:
    with SqliteLedger(tmp_path / "ledger.db") as ledger:
        looked_through(ledger)


def test_it_is_written_while_it_is_looked_through(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        for revision, _ in enumerate(ledger.check(), 2):
            ended = pod("pod-0", segment(1000, 1010), segment(1010, 1010 + revision), revision=revision)
            ledger.write(step(ended, pods={"pod-0": ended}, live=None))
        assert revision > 20


def test_old_pages_that_cannot_be_read_are_found_and_do_not_stop_a_start(path: Path) -> None:
    content = bytearray(path.read_bytes())
    place = content.index(b"old-1500") // PAGE * PAGE  # of the table, which was written before its index
    content[place : place + PAGE] = b"\xa5" * PAGE
    path.write_bytes(content)

    with SqliteLedger(path) as ledger:
        assert len(ledger.saved(now_us=0).pods) == 3
        with pytest.raises(LedgerDamaged, match=re.escape(f"{path}: is damaged: database disk image is malformed")):
            looked_through(ledger)


@pytest.mark.parametrize(
    ("sql", "damage", "steps"),
    [
        ("UPDATE pod_segments SET quantity = quantity + 7 WHERE end_us IS NULL", "differ from the balance by -21", 0),
        ("DELETE FROM pod_segments WHERE end_us IS NULL AND pod % 2", "differ from the balance by", 0),
        ("DELETE FROM pod_segments WHERE pod = 5999 AND ordinal = 0", "pod old-5998 lacks segments", 0),
        ("DELETE FROM pod_segments WHERE pod = 1500 AND ordinal = 1", "pod old-1499 lacks segments", 2),
        ("DELETE FROM pod_revisions WHERE pod = 2500", "pod old-2499 lacks segments", 3),
        ("UPDATE pod_segments SET start_us = 'soon' WHERE pod = 77 AND ordinal = 0", r"the row \(77, 0, 1\) of", 9),
    ],
)
def test_rows_that_contradict_each_other_are_found(path: Path, sql: str, damage: str, steps: int) -> None:
    tamper(path, sql)

    with SqliteLedger(path) as ledger:
        check = ledger.check()
        for _ in range(steps):
            next(check)
        with pytest.raises(LedgerDamaged, match=damage):
            list(check)


def test_what_cannot_be_read_now_is_no_damage(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        path.rename(path.with_suffix(".moved"))
        with pytest.raises(LedgerUnwritable, match="cannot be read now: unable to open"):
            looked_through(ledger)


def test_a_start_reads_no_table_of_the_past_as_a_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    connect = sqlite3.connect

    def traced(*args: Any, **more: Any) -> sqlite3.Connection:  # noqa: ANN401 - passed on
        connection: sqlite3.Connection = connect(*args, **more)
        connection.set_trace_callback(told.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    with SqliteLedger(path) as ledger:
        ledger.bind("cluster")
        ledger.saved(now_us=0)
        assert ledger.write(step(alive(7))) != BALANCED
    monkeypatch.undo()

    assert len([sql for sql in told if "SELECT" in sql]) > 10
    assert scans(path, told) <= {
        "working",
        "w",
        "watches",
        "series",
        "known_values",
        "json_each",
        "wanted",
        "meta",
        "summed_pages",  # one row for thousands of pods
        "CONSTANT",
    }


def scans(path: Path, statements: list[str]) -> set[str]:
    """The tables that the statements read from their beginning to their end."""
    found = set()
    with closing(sqlite3.connect(path)) as connection:
        for sql in statements:
            if "SELECT" in sql and "LIMIT 1" not in sql:
                plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
                found |= {
                    each[1]
                    for *_, text in plan
                    if (each := re.match(r"SCAN (\w+)\b(?! USING (?:COVERING )?INDEX \w+_open)", text))
                }
    return found

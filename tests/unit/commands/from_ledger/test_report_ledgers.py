"""Which ledgers `gputally report` reads."""

import json
from pathlib import Path

import pytest

from gputally.ledger.sqlite.writer import SqliteLedger
from tests.contract.records import step
from tests.unit.commands.from_ledger.test_report import HOUR, PODS, SECOND_DAY
from tests.unit.commands.sample import CLUSTER, Runner
from tests.unit.ledger.next_schema import NEXT, TODAY, begin_next_version, written


def test_a_ledger_of_an_older_schema_is_refused(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "old.db")
    begin_next_version(monkeypatch)

    found = run("report", "--ledger", tmp_path / "old.db")

    assert (found.status, found.out) == (4, "")
    assert f"has schema {TODAY}, but this gputally reads {NEXT}; start its aggregator, which upgrades it" in found.err


def test_a_missing_ledger_is_named(run: Runner, tmp_path: Path) -> None:
    found = run("report", "--ledger", tmp_path / "none.db")

    assert (found.status, found.out) == (4, "")
    assert f"{tmp_path / 'none.db'}: no such file" in found.err


def test_a_report_beside_a_writer_ends_at_the_last_write(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        ledger.write(step(PODS[3], at=SECOND_DAY + HOUR))
        flags = ("report", "--ledger", path, "--window", "all", "--output", "json")
        first = json.loads(run(*flags).out)["totals"][0]["gpu_hours"]
        ledger.write(step(at=SECOND_DAY + 2 * HOUR, live=None))

        assert (first, json.loads(run(*flags).out)["totals"][0]["gpu_hours"]) == (1.0, 2.0)

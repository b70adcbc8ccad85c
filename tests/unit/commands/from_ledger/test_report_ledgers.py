"""Which ledgers `gputally report` reads."""

import json
from pathlib import Path

import pytest

from gputally.ledger.sqlite.writer import SqliteLedger
from tests.contract.records import step
from tests.unit.commands.from_ledger.test_report import HOUR, PODS, SECOND_DAY
from tests.unit.commands.sample import CLUSTER, Runner
from tests.unit.ledger.older_ledger import NEWEST, written_by


@pytest.mark.parametrize("version", [1, NEWEST - 1])
def test_a_ledger_of_an_older_schema_is_refused(run: Runner, tmp_path: Path, version: int) -> None:
    written_by(version, tmp_path / "old.db")

    found = run("report", "--ledger", tmp_path / "old.db")

    assert (found.status, found.out) == (4, "")
    assert (
        f"has schema {version}, but this gputally reads {NEWEST}; start its aggregator, which upgrades it" in found.err
    )


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

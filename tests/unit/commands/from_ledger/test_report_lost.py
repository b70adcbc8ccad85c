"""`gputally report` says what preemptions destroyed, by every dimension, and how much of it had been used."""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.lost_work import CheckpointSource, LostPod
from tests.contract.records import us
from tests.contract.test_unallocated import HOUR
from tests.contract.test_waterfall import fill, lost
from tests.unit.commands.sample import CLUSTER, Runner

VICTIM = LostPod("a", us(7 * HOUR), us(8 * HOUR), CheckpointSource.ANNOTATION)
UNPRICED = LostPod("b", us(7 * HOUR), us(8 * HOUR), CheckpointSource.START)


def ledger_of(path: Path, *pods: LostPod) -> Path:
    """See `fill`: pod `a` of red has 2 GPUs at 5 an hour, pod `b` of blue one without a price."""
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        fill(ledger)
        for each in pods:
            ledger.write(lost(each, victim=each.uid))
    return path


def rows(run: Runner, ledger: Path, *flags: str) -> tuple[list[Mapping[str, Any]], Mapping[str, Any]]:
    flags = ("--ledger", str(ledger), "--window", "all", "--output", "json", *flags)
    document = json.loads(run("report", *flags).out)
    [total] = document["totals"]
    return document["rows"], total


@pytest.mark.parametrize("by", ["tenant", "tier", "job", "pod", "node", "gpu_model", "hour", "outcome", "tenant,day"])
def test_rows_add_up_to_all_that_is_lost(tmp_path: Path, run: Runner, by: str) -> None:
    found, total = rows(run, ledger_of(tmp_path / "l.db", VICTIM, UNPRICED), "--by", by)

    assert (total["lost"], total["lost_cost"]) == (3, 10)
    assert (sum(row["lost"] for row in found), sum(row["lost_cost"] for row in found)) == (3, 10)
    assert all(row["lost"] <= row["gpu_hours"] and row["lost_cost"] <= row["cost"] for row in found)


def test_each_tenant_has_its_own_loss(tmp_path: Path, run: Runner) -> None:
    found, _ = rows(run, ledger_of(tmp_path / "l.db", VICTIM, UNPRICED))

    assert [(row["tenant"], row["lost"], row["lost_cost"]) for row in found] == [("red", 2, 10), ("blue", 1, 0)]


def test_it_belongs_to_the_hours_in_which_it_was_done(tmp_path: Path, run: Runner) -> None:
    ledger = ledger_of(tmp_path / "l.db", VICTIM)
    before = run("report", "--ledger", ledger, "--window", "1970-01-01T05:00/1970-01-01T07:00", "--output", "csv").out

    assert {row["lost"] for row in csv.DictReader(io.StringIO(before))} == {"0.000000"}


def test_the_table_has_the_columns_only_if_something_is_lost(tmp_path: Path, run: Runner) -> None:
    some = run("report", "--ledger", ledger_of(tmp_path / "some.db", VICTIM), "--window", "all").out
    none = run("report", "--ledger", ledger_of(tmp_path / "none.db"), "--window", "all").out

    assert "lost GPU-h  lost cost" in some
    assert "lost" not in none


def test_upper_bounds_have_their_sign_on_hours_and_cost_in_rows_and_totals(tmp_path: Path, run: Runner) -> None:
    unknown = LostPod("a", us(7 * HOUR), us(8 * HOUR), CheckpointSource.START)
    stated = LostPod("b", us(7 * HOUR), us(8 * HOUR), CheckpointSource.ANNOTATION)
    ledger = ledger_of(tmp_path / "l.db", unknown, stated)
    found, total = rows(run, ledger)
    table = run("report", "--ledger", ledger, "--window", "all").out
    html = run("report", "--ledger", ledger, "--window", "all", "--output", "html").out
    markdown = run("report", "--ledger", ledger, "--window", "all", "--output", "markdown").out

    assert [(row["tenant"], row["is_lost_upper_bound"]) for row in found] == [("red", True), ("blue", False)]
    assert total["is_lost_upper_bound"]
    cells = {line.split()[0]: line.split() for line in table.splitlines() if line.strip()}
    assert {"<2.00", "<10.00"} <= set(cells["red"])
    assert {"<3.00", "<10.00"} <= set(cells["total"])
    assert not any("<" in each for each in cells["blue"])
    assert '<td class="number">&lt;2.00</td><td class="number">&lt;10.00</td>' in html
    assert "| \\<2.00 | \\<10.00 |" in markdown
    teams = run("report", "--ledger", ledger, "--window", "all", "--preset", "team").out
    for text in (table, teams, html.replace("&lt;", "<"), markdown.replace("\\<", "<")):
        assert "Lost work counts from the accounting start, 1970-01-01 00:16:40 UTC; < marks upper bounds" in text


def test_teams_and_shared_capacity_have_it_too(tmp_path: Path, run: Runner) -> None:
    ledger = ledger_of(tmp_path / "l.db", VICTIM)
    teams, _ = rows(run, ledger, "--preset", "team")
    shared, _ = rows(run, ledger, "--unallocated", "even")

    for found in (teams, shared):
        assert [(row["tenant"], row["lost"]) for row in found] == [("red", 2), ("blue", 0)]

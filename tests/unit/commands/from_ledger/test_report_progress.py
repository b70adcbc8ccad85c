"""`gputally report --by job` with the progress of jobs."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from gputally.accounting.jobs.progress import PodProgress
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.units import MICRO
from tests.contract.records import pod, segment, step, us
from tests.unit.commands.sample import CLUSTER, Runner

HOUR = 3600
DAY = 86_400
PODS = [
    pod("a", segment(DAY, DAY + 10 * HOUR), job="train", scheduled_us=us(DAY)),
    pod("b", segment(DAY + HOUR, DAY + 3 * HOUR), job="train", scheduled_us=us(DAY + HOUR)),
    pod("c", segment(DAY, DAY + 5 * HOUR), job="silent", scheduled_us=us(DAY)),
    pod("d", segment(DAY, DAY + HOUR, price=None), job="unpriced", scheduled_us=us(DAY)),
    pod("e", segment(DAY, DAY + HOUR), job="idle", scheduled_us=us(DAY)),
    pod(
        "f",
        *(segment(DAY, DAY + HOUR), segment(DAY + HOUR, DAY + 2 * HOUR, tenant="blue")),
        job="moved",
        scheduled_us=us(DAY),
    ),
]
STATED = {"a": ("train", 8), "b": ("train", 7), "d": ("unpriced", 1), "e": ("idle", 0), "f": ("moved", 4)}
"""What pods state, in quarters of an epoch."""
PER_HOUR = 1.2345678901


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "l.db"
    progress = {
        ("ml", "Job", job, uid): PodProgress(uid=uid, micro=count * MICRO // 4, unit="epoch", at_us=us(DAY + 9 * HOUR))
        for uid, (job, count) in STATED.items()
    }
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        ledger.write(step(*PODS, at=2 * DAY, progress=progress))
    return path


def jobs(run: Runner, ledger: Path, *more: str) -> dict[str, tuple[Any, ...]]:
    """Progress, unit and cost per unit by job."""
    flags = ("--window", "all", "--by", "job", "--output", "json", *more)
    result = run("report", "--ledger", ledger, *flags)
    assert (result.status, result.err) == (0, "")
    rows = json.loads(result.out)["rows"]
    return {row["job"]: (row["progress"], row["progress_unit"], row["cost_per_unit"]) for row in rows}


def test_the_cost_of_a_unit_is_the_cost_of_all_pods_divided_by_the_progress_of_the_job(
    run: Runner, ledger: Path
) -> None:
    found = jobs(run, ledger)

    assert found["train"] == (2, "epoch", pytest.approx(12 * PER_HOUR / 2, abs=1e-6))
    assert found["silent"] == (None, None, None)


def test_without_a_price_or_any_progress_there_is_no_cost_of_a_unit(run: Runner, ledger: Path) -> None:
    found = jobs(run, ledger)

    assert found["unpriced"] == (0.25, "epoch", None)
    assert found["idle"] == (0, "epoch", None)


@pytest.mark.parametrize(
    ("cut_off", "progress"),
    [
        ("1970-01-02T08:59:59Z", (None, None, None)),
        ("1970-01-02T09:00:00Z", (2, "epoch", pytest.approx(11 * PER_HOUR / 2))),
    ],
)
def test_at_an_older_cut_off_progress_is_shown_if_the_latest_value_was_known_by_then(
    run: Runner, ledger: Path, cut_off: str, progress: tuple[Any, ...]
) -> None:
    """The ledger has no earlier value."""
    assert jobs(run, ledger, "--cut-off", cut_off)["train"] == progress


def test_a_row_with_a_part_of_a_job_has_no_cost_of_a_unit(run: Runner, ledger: Path) -> None:
    assert jobs(run, ledger)["moved"] == (1, "epoch", pytest.approx(2 * PER_HOUR, abs=1e-6))
    assert jobs(run, ledger, "--by", "job,tenant")["moved"] == (1, "epoch", None)
    assert jobs(run, ledger, "--where", "tenant=blue")["moved"] == (1, "epoch", None)
    assert jobs(run, ledger, "--where", "job=mov*")["moved"] == (1, "epoch", pytest.approx(2 * PER_HOUR, abs=1e-6))


def test_a_window_that_begins_within_the_job_has_no_cost_of_a_unit(run: Runner, ledger: Path) -> None:
    window = "1970-01-02T02:00:00Z/1970-01-03T00:00:00Z"

    assert jobs(run, ledger, "--window", window)["train"] == (2, "epoch", None)


def test_a_window_that_ends_before_the_progress_has_none(run: Runner, ledger: Path) -> None:
    window = "1970-01-02T00:00:00Z/1970-01-02T08:00:00Z"

    assert jobs(run, ledger, "--window", window)["train"] == (None, None, None)


def test_people_see_the_columns_only_if_a_job_states_progress(run: Runner, ledger: Path) -> None:
    def shown(*more: str) -> str:
        return run("report", "--ledger", ledger, "--window", "all", *more).out

    assert "progress  progress unit  cost per unit CHF" in shown("--by", "job")
    assert "progress" not in shown("--by", "job", "--where", "job=silent")
    assert "progress" not in shown("--by", "tenant")


def test_csv_has_the_columns_in_every_report(run: Runner, ledger: Path) -> None:
    result = run("report", "--ledger", ledger, "--window", "all", "--output", "csv")
    rows = list(csv.DictReader(io.StringIO(result.out)))

    assert {(row["progress"], row["progress_unit"], row["cost_per_unit"]) for row in rows} == {("", "", "")}

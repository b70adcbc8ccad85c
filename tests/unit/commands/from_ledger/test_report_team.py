"""`gputally report --preset team`: the month of each team, with its most expensive jobs."""

import csv
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.units import GPU
from gputally.reports.bill_rows import OTHERS
from tests.contract.records import pod, segment, step
from tests.contract.test_measured_time import hour
from tests.contract.test_usage import reported
from tests.unit.commands.sample import CLUSTER, Runner

HOUR = 3600
DAY = 86_400
HOURS = {"j1": 7, "j2": 6, "j3": 5, "j4": 4, "j5": 3, "j6": 2, "j7": 1}
"""Hours of the jobs of team red, which has one GPU each for them, and 2 for j1."""
PODS = [
    *(
        pod(f"a-{name}", segment(DAY, DAY + hours * HOUR, quantity=GPU * (1 + (name == "j1"))), job=name)
        for name, hours in HOURS.items()
    ),
    pod("second", segment(DAY, DAY + HOUR), job="j7"),
    pod("blue", segment(DAY, DAY + 9 * HOUR, tenant="blue"), job="infer", job_kind="Deployment"),
]
USAGE = [hour(DAY, DAY + HOUR, used=900)]
TOTAL = 14 + 6 + 5 + 4 + 3 + 2 + 1 + 1
ALL = ("--preset", "team", "--window", "all")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "l.db"
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        ledger.write(step(*PODS, at=2 * DAY))
        ledger.write(reported(*USAGE, at=2 * DAY))
    return path


def teams(run: Runner, ledger: Path, *more: str) -> dict[str, Any]:
    result = run("report", *ALL, "--ledger", ledger, "--output", "json", *more)
    assert (result.status, result.err) == (0, "")
    return {row["tenant"]: row for row in json.loads(result.out)["rows"]}


@pytest.mark.parametrize("output", ["json", "csv", "table"])
def test_the_jobs_of_a_team_add_up_to_what_is_shown_for_it(run: Runner, tmp_path: Path, output: str) -> None:
    """Two teams with half a GPU-hour each are rounded to one and none."""
    path = tmp_path / "l.db"
    halves = [
        pod(f"{tenant}-{job}", segment(DAY, DAY + 900, tenant=tenant), job=job)
        for tenant in ("blue", "red")
        for job in ("j1", "j2")
    ]
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        ledger.write(step(*halves, at=2 * DAY))

    out = run("report", *ALL, "--ledger", path, "--decimals", "0", "--output", output).out

    if output == "json":
        found = [(row["gpu_hours"], [job["gpu_hours"] for job in row["top_jobs"]]) for row in json.loads(out)["rows"]]
        assert found == [(1, [1, 0]), (0, [0, 0])]
    elif output == "csv":
        assert [row["gpu_hours"] for row in csv.DictReader(io.StringIO(out))] == ["1", "0", "0", "0"]
    else:
        totals = [line.split()[1] for line in out.splitlines() if line.startswith("total")]
        assert totals == ["1", "1", "0"]


def test_a_team_has_its_totals_its_number_of_jobs_and_its_five_most_expensive_jobs(run: Runner, ledger: Path) -> None:
    found = teams(run, ledger)

    assert found.keys() == {"red", "blue"}
    red = found["red"]
    assert (red["gpu_hours"], red["jobs"]) == (TOTAL, 7)
    assert [row["job"] for row in red["top_jobs"]] == ["j1", "j2", "j3", "j4", "j5", OTHERS]
    assert [row["gpu_hours"] for row in red["top_jobs"]] == [14, 6, 5, 4, 3, 4]
    assert sum(row["cost"] for row in red["top_jobs"]) == pytest.approx(red["cost"])
    assert [row["job"] for row in found["blue"]["top_jobs"]] == ["infer"]


def test_another_number_of_jobs_can_be_shown(run: Runner, ledger: Path) -> None:
    shown = teams(run, ledger, "--top", "2", "--where", "tenant=red")["red"]["top_jobs"]

    assert [row["job"] for row in shown] == ["j1", "j2", OTHERS]


def test_the_columns_of_csv_add_up_to_the_total(run: Runner, ledger: Path) -> None:
    result = run("report", *ALL, "--ledger", ledger, "--output", "csv")
    rows = list(csv.DictReader(io.StringIO(result.out)))

    assert sum(Decimal(row["gpu_hours"]) for row in rows) == TOTAL + 9
    assert {row["tenant"] for row in rows} == {"red", "blue"}


@pytest.mark.parametrize(
    ("output", "heading"),
    [
        ("table", "\nred: top 5 jobs by cost\n\n"),
        ("markdown", "\n## red: top 5 jobs by cost\n\n"),
        ("html", "<table>\n<caption>red: top 5 jobs by cost</caption>"),
    ],
)
def test_people_see_a_table_of_teams_and_one_for_each(run: Runner, ledger: Path, output: str, heading: str) -> None:
    shown = run("report", *ALL, "--ledger", ledger, "--output", output).out

    assert heading in shown
    assert shown.index("blue") < shown.index("infer")
    assert "(others)" in shown


@pytest.mark.parametrize(
    "more", [("--by", "node"), ("--compare", "previous"), ("--output", "focus"), ("--unallocated",)]
)
def test_it_cannot_be_combined_with_other_rows(run: Runner, ledger: Path, more: tuple[str, ...]) -> None:
    result = run("report", *ALL, "--ledger", ledger, *more)

    assert result.status == 2
    assert f"--preset: cannot be combined with {' '.join(more).removesuffix(' node').removesuffix(' previous')}" in (
        result.err
    )


def test_a_tenant_that_is_not_found_is_reported(run: Runner, ledger: Path) -> None:
    result = run("report", *ALL, "--ledger", ledger, "--where", "tenant=nobody")

    assert (result.status, "No record has tenant nobody: check the spelling." in result.out) == (0, True)

"""What allocations may have had in the gaps in which they ended is in each report, and in no cost."""

import csv
import io
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.allocation import End, Gap
from gputally.model.pod_record import PodRecord
from gputally.model.units import GPU
from gputally.reports.bill_rows import OTHERS
from tests.contract.records import pod, segment, step, us
from tests.unit.commands.sample import CLUSTER, Runner

HOUR = 3600
DAY = 86_400
ACCOUNTED = 3 * DAY


def ended(uid: str, start: int, end: int, until: int, *, gpus: int = 1, tenant: str = "red") -> PodRecord:
    """A pod that ended unobserved between `end` and `until`; before its last hour, it had another tier."""
    parts = (
        segment(start, end - HOUR, tenant=tenant, quantity=gpus * GPU, tier="first"),
        segment(end - HOUR, end, tenant=tenant, quantity=gpus * GPU),
    )
    gap = Gap(from_us=us(end), to_us=us(until))
    return pod(uid, *parts, scheduled_us=us(start), end_us=us(end), end_by=End.VANISHED, gap=gap, job=f"of-{uid}")


PODS = [
    ended("a", DAY, DAY + 4 * HOUR, DAY + 4 * HOUR + 1200),
    ended("b", DAY, DAY + 6 * HOUR, DAY + 6 * HOUR + 1200, gpus=2),
    ended("c", DAY, 2 * DAY - HOUR, 2 * DAY + 2 * HOUR, gpus=4, tenant="blue"),
    ended("d", DAY, 2 * DAY, 2 * DAY + 600, tenant="blue"),
    pod("e", segment(DAY, DAY + HOUR, tenant="green"), end_us=us(DAY + HOUR), gap=None),
]
"""Missing at most: 20 min, 40 min, 12 h, of which 4 on the first day, and 10 min from midnight on."""


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "l.db"
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        ledger.write(step(*PODS, at=ACCOUNTED))
    return path


def unobserved(run: Runner, ledger: Path, by: str, *flags: str, window: str = "all") -> dict[str, float]:
    """By the labels of the columns; the total has none."""
    given = ("--window", window, "--by", by, "--decimals", "3", "--ledger", ledger, "--output", "json")
    document = json.loads(run("report", *given, *flags).out)
    [total] = document["totals"]
    return {",".join(row[each] for each in by.split(",")): row["unobserved"] for row in document["rows"]} | {
        "": total["unobserved"]
    }


def test_a_row_has_at_most_what_its_pods_had_in_their_gaps_and_rows_add_up(run: Runner, ledger: Path) -> None:
    assert unobserved(run, ledger, "tenant") == {"red": 1.0, "blue": 12.167, "green": 0, "": 13.167}
    assert unobserved(run, ledger, "tenant", "--decimals", "0") == {"red": 1, "blue": 12, "green": 0, "": 13}
    assert unobserved(run, ledger, "job", "--top", "2", "--where", "tenant=red,blue") == {
        "of-c": 12.0,
        "of-d": 0.167,
        OTHERS: 1.0,
        "": 13.167,
    }


def test_it_has_the_labels_of_the_last_segment(run: Runner, ledger: Path) -> None:
    assert unobserved(run, ledger, "tier") == {"first": 0, "a tier of its own": 13.167, "": 13.167}
    assert unobserved(run, ledger, "tenant", "--where", "tier=first") == {"blue": 0, "red": 0, "": 0}


def test_a_gap_counts_in_the_period_in_which_it_begins(run: Runner, ledger: Path) -> None:
    """It is on the line of the time that was charged before it, also of a pod that was charged up to midnight."""
    assert unobserved(run, ledger, "day") == {"1970-01-02": 13.167, "": 13.167}
    assert unobserved(run, ledger, "hour,tenant", "--where", "hour=*05:00,*06:00") == {
        "1970-01-02 05:00,red": 0.667,
        "1970-01-02 05:00,blue": 0,
        "1970-01-02 06:00,blue": 0,
        "": 0.667,
    }


def test_two_periods_share_a_gap_that_their_border_divides(run: Runner, ledger: Path) -> None:
    first = unobserved(run, ledger, "tenant", window="1970-01-02")
    second = unobserved(run, ledger, "tenant", window="1970-01-03")

    assert first == {"red": 1.0, "blue": 4.0, "green": 0, "": 5.0}
    assert second == {"blue": 8.167, "": 8.167}


def test_a_table_has_the_column_only_if_a_row_has_some(run: Runner, ledger: Path) -> None:
    some = run("report", "--window", "all", "--ledger", ledger).out.splitlines()
    none = run("report", "--window", "all", "--where", "tenant=green", "--ledger", ledger).out

    assert some[2].split()[:5] == ["tenant", "GPU-hours", "unobserved", "cost", "CHF"]
    assert [line.split()[:3] for line in some[3:7]] == [
        ["blue", "116.00", "12.17"],
        ["red", "16.00", "1.00"],
        ["green", "1.00", "0.00"],
        ["total", "133.00", "13.17"],
    ]
    assert "unobserved" not in none


def test_csv_always_has_the_column(run: Runner, ledger: Path) -> None:
    flags = ("--window", "all", "--where", "tenant=green", "--output", "csv", "--ledger", ledger)
    [row] = csv.DictReader(io.StringIO(run("report", *flags).out))

    assert row["unobserved"] == "0.000000"


def test_teams_and_bills_with_unallocated_capacity_have_it_too(run: Runner, ledger: Path) -> None:
    flags = ("--window", "all", "--output", "json", "--ledger", ledger)
    teams = json.loads(run("report", *flags, "--preset", "team").out)["rows"]

    assert {row["tenant"]: row["unobserved"] for row in teams} == {"red": 1.0, "blue": 12.166667, "green": 0}
    assert [{job["job"]: job["unobserved"] for job in row["top_jobs"]} for row in teams] == [
        {"of-c": 12.0, "of-d": 0.166667},
        {"of-b": 0.666667, "of-a": 0.333333},
        {"train": 0},
    ]
    for sharing in ("rows", "even", "weighted"):
        assert unobserved(run, ledger, "tenant", "--unallocated", sharing)[""] == 13.167


def test_history_has_it_up_to_the_accounting_start_of_the_cluster(run: Runner, ledger: Path, tmp_path: Path) -> None:
    """That start divides the gaps of "c" and "d" at 01:00 of the third day: 8 h and 10 min are before it."""
    live, start = tmp_path / "live.db", 2 * DAY + HOUR
    with SqliteLedger(live) as writer:
        writer.bind(CLUSTER)
        began = replace(step(live=None), accounting_start_us=us(start), at_us=us(start), evaluated_us=us(start))
        writer.write(began)
        own = ended("f", start, start + 2 * HOUR, start + 3 * HOUR, gpus=2, tenant="blue")
        writer.write(replace(step(own, at=ACCOUNTED, live=(2 * GPU * us(2 * HOUR), 0)), accounting_start_us=us(start)))

    alone = unobserved(run, live, "tenant")
    joined = unobserved(run, live, "tenant", "--history", str(ledger))

    assert alone == {"blue": 2.0, "": 2.0}
    assert joined == {"red": 1.0, "blue": 8 + 0.167 + 2, "green": 0, "": 11.167}

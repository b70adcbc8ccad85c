"""`gputally explain` leads from a row of a report to its allocations, prices and dates."""

import csv
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gputally.formatting.formats import FORMATS
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.allocation import End, Gap, State
from gputally.model.kube.kinds import Kind
from gputally.model.pod_record import PodRecord
from gputally.model.price import Purchase
from gputally.model.units import GPU, PICO
from gputally.reports.choices import COLUMNS
from tests.conftest import Golden
from tests.contract.records import PRICE, pod, segment, step, us
from tests.unit.commands.sample import CLUSTER, Runner

HOUR = 3600
DAY = 86_400
SPOT = replace(PRICE, key="0123456789ab/h100-spot/spot/1970-01-01T12:00:00Z/x1.5")
CHEAP = replace(
    PRICE,
    key="0123456789ab/h100/on-demand/always/x1",
    per_gpu_hour=Decimal("0.4"),
    rate=4 * PICO // 10,
    purchase=Purchase.ON_DEMAND,
)
ACCOUNTED = DAY + 9 * HOUR


def life(start: int, end: int | None, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any field of a pod
    """The times of an allocation that its containers ended."""
    ended = {"end_us": us(end), "end_by": End.FINISHED} if end is not None else {"end_us": None, "end_by": None}
    return {"scheduled_us": us(start), "gap": None, **ended, **more}


def pods() -> list[PodRecord]:
    return [
        pod(
            "a",
            segment(DAY - HOUR, DAY - 1800, state=State.STARTING, price=SPOT),
            segment(DAY - 1800, DAY + 5, price=SPOT),
            segment(DAY + 5, DAY + HOUR, tier="other", price=CHEAP),
            revision=3,
            **life(DAY - HOUR, DAY + HOUR),
        ),
        pod(
            "b",
            segment(DAY, DAY + 7 * HOUR, tenant="blue", quantity=4 * GPU, price=CHEAP),
            job_kind="Deployment",
            job="infer",
            **life(DAY, DAY + 7 * HOUR, end_by=End.VANISHED, gap=Gap(from_us=us(DAY + 7 * HOUR), to_us=us(ACCOUNTED))),
        ),
        pod("c", segment(DAY, None, quantity=GPU // 3, price=None, queue=""), **life(DAY, None), node="n2"),
    ]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Three pods: one that finished, one that disappeared while nobody watched, one that runs without a price."""
    path = tmp_path / "l.db"
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        unwatched = {(Kind.PODS, us(DAY + 7 * HOUR)): us(DAY + 8 * HOUR)}
        ledger.write(step(*pods(), at=ACCOUNTED, interruptions=unwatched))
    return path


@pytest.mark.parametrize("output", FORMATS)
def test_an_explanation_is_as_recorded(run: Runner, ledger: Path, golden: Golden, output: str) -> None:
    found = run("explain", "--ledger", ledger, "--window", "all", "--output", output)

    assert (found.status, found.err) == (0, "")
    golden.check(f"explain.{output}", found.out)


def rows_of(run: Runner, ledger: Path, *flags: str) -> list[dict[str, str]]:
    out = run("explain", "--ledger", ledger, "--window", "all", "--output", "csv", *flags).out
    return list(csv.DictReader(io.StringIO(out)))


@pytest.mark.parametrize("decimals", ["0", "2", "9"])
@pytest.mark.parametrize("by", ["tenant,tier", "day", "hour_of_day,tenant", "day,hours", "pod", "purchase"])
def test_its_rows_add_up_to_each_row_of_the_report(run: Runner, ledger: Path, by: str, decimals: str) -> None:
    """Rows of a report are rounded by largest remainder, so the last digit of one may differ by one."""
    flags = ("--ledger", ledger, "--window", "all", "--decimals", decimals)
    report = json.loads(run("report", *flags, "--by", by, "--output", "json").out, parse_float=Decimal)["rows"]
    digit = Decimal(1).scaleb(-int(decimals))

    assert report
    for row in report:
        where = [f"--where={column}={row[column]}" for each in by.split(",") for column in COLUMNS[each]]
        document = json.loads(run("explain", *flags, *where, "--output", "json").out, parse_float=Decimal)
        [total] = document["totals"]
        for field in ("gpu_hours", "cost"):
            assert abs((total[field] or 0) - row[field]) <= digit
            assert sum(each[field] or 0 for each in document["rows"]) == (total[field] or 0)
        assert abs(document["uncharged_gpu_hours"] - row["unobserved"]) <= digit


def test_the_whole_equals_the_total_of_the_report_to_the_last_digit(run: Runner, ledger: Path) -> None:
    flags = ("--ledger", ledger, "--window", "today", "--output", "json")
    [of_report] = json.loads(run("report", *flags).out)["totals"]
    [explained] = json.loads(run("explain", *flags).out)["totals"]

    assert explained == {name: of_report[name] for name in ("currency", "gpu_hours", "unpriced", "cost")}


def test_the_top_pods_come_first_and_one_row_adds_up_the_others(run: Runner, ledger: Path) -> None:
    rows = rows_of(run, ledger, "--top", "1")
    table = run("explain", "--ledger", ledger, "--window", "all", "--top", "1").out

    assert [(row["pod"], row["gpu_hours"], row["cost"]) for row in rows] == [
        ("pod-b", "28.000000", "11.200000"),
        ("(others)", "4.999997", "1.635727"),
    ]
    assert "\n2 other pods\n  5.00 GPU-hours, 1.64 CHF\n\ntotal of 3 pods\n  33.00 GPU-hours, 12.84 CHF\n" in table


def test_a_filter_on_time_cuts_allocations_at_its_periods(run: Runner, ledger: Path) -> None:
    """Kathmandu was 5 hours and 30 minutes ahead of UTC in 1970."""
    zone = ("--time-zone", "Asia/Kathmandu", "--where", "hour_of_day=05:00", "--where", "pod=pod-a")

    assert [(row["from"], row["to"]) for row in rows_of(run, ledger, *zone)] == [
        ("1970-01-02T05:00:00+05:30", "1970-01-02T05:30:05+05:30"),
        ("1970-01-02T05:30:05+05:30", "1970-01-02T06:00:00+05:30"),
    ]


def test_nothing_to_explain_is_said(run: Runner, ledger: Path) -> None:
    found = run("explain", "--ledger", ledger, "--window", "all", "--where", "tenant=visoin")

    assert (found.status, found.err) == (0, "gputally: No record has tenant visoin: check the spelling.\n")
    assert "total of 0 pods\n" in found.out


def test_names_cannot_control_the_terminal(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        ledger.write(step(pod("a", segment(1000, 2000, tenant="\x1b[2J"), node="\x07"), at=ACCOUNTED))

    shown = run("explain", "--ledger", path, "--window", "all").out

    assert "tenant \\x1b[2J" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown

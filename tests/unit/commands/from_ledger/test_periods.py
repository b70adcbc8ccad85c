"""`gputally periods` lists and verifies closed periods, and shows their invoices."""

import csv
import io
import json
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from gputally.formatting.formats import FORMATS
from gputally.ledger.open import open_reader
from gputally.ledger.records import Window
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.reports.closing import period_in
from tests.conftest import Golden
from tests.contract.records import PRICE, pod, segment, step, us
from tests.core.closings import close
from tests.unit.commands.sample import CLUSTER, Runner, change, names

DAY = 86_400
EUR = replace(PRICE, key="euro", currency="EUR")
ROWS = ("period", "tenant", "gpu_hours", "cost")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Two closed days; the second has a correction of the first, and so would the third."""
    path = tmp_path / "l.db"
    with SqliteLedger(path) as ledger, open_reader(str(path)) as reader:
        ledger.bind(CLUSTER)
        pods = (pod("a", segment(DAY, 4 * DAY)), pod("b", segment(DAY, 2 * DAY, tenant="blue", price=EUR)))
        ledger.write(step(*pods, pod("c", segment(DAY, DAY + 3600, price=None)), at=9 * DAY))
        close(ledger, reader, Window(us(DAY), us(2 * DAY)), name="1970-01-02")
        revised = pod("b", segment(DAY, 2 * DAY - 7200, tenant="blue", price=EUR), revision=2)
        ledger.write(step(revised, at=9 * DAY, live=None))
        close(ledger, reader, Window(us(2 * DAY), us(3 * DAY)), name="1970-01-03")
        ledger.write(step(pod("c", segment(DAY, DAY + 7200, price=None), revision=2), at=9 * DAY, live=None))
    return path


def cells(text: str, *columns: str) -> list[tuple[str, ...]]:
    return [tuple(row[each] for each in columns) for row in csv.DictReader(io.StringIO(text))]


def test_the_list_has_totals_and_corrections_of_each_period(run: Runner, ledger: Path) -> None:
    found = run("periods", "--ledger", ledger)

    assert (found.status, found.err) == (0, "")
    head, *rows = found.out.splitlines()
    assert head.split() == ["period", "closed", "GPU-hours", "cost", "corrections", "price", "book", "hash", "verified"]
    assert [row.split()[0] for row in rows] == ["1970-01-02", "1970-01-03"]
    assert "49.00  29.63 CHF, 29.63 EUR  " in rows[0]
    assert "24.00  29.63 CHF" in rows[1]
    assert " -2.47 EUR " in rows[1]
    assert all(row.endswith("  yes") for row in rows)


def test_an_invoice_has_corrections_as_rows_of_their_own(run: Runner, ledger: Path) -> None:
    found = run("periods", "1970-01-03", "--by", "tenant", "--ledger", ledger, "--output", "csv", "--decimals", "2")

    assert cells(found.out, *ROWS, "currency") == [
        ("1970-01-03", "red", "24.00", "29.63", "CHF"),
        ("1970-01-02", "blue", "-2.00", "-2.47", "EUR"),
    ]


def test_an_invoice_is_the_report_as_long_as_nothing_comes_later(run: Runner, ledger: Path) -> None:
    """The report of the first day has changed since; that of the second has not."""
    flags = ("--ledger", ledger, "--by", "tenant,tier,gpu_model,pool,purchase", "--output", "csv")
    columns = ("tenant", "tier", "gpu_model", "pool", "purchase", "gpu_hours", "cost", "unpriced", "currency")
    report = {day: cells(run("report", "--window", day, *flags).out, *columns) for day in ("1970-01-02", "1970-01-03")}
    invoice = {
        day: [row[1:] for row in cells(run("periods", day, *flags).out, "period", *columns) if row[0] == day]
        for day in report
    }

    assert invoice["1970-01-03"] == report["1970-01-03"]
    assert invoice["1970-01-02"] != report["1970-01-02"]


def test_corrections_and_totals_add_up_to_the_report_of_now(run: Runner, ledger: Path) -> None:
    documents = [
        json.loads(run("periods", day, *more, "--ledger", ledger, "--output", "json").out)
        for day, *more in (("1970-01-02",), ("1970-01-03",), ("1970-01-04", "--preview"))
    ]
    hours = sum(
        int(line["gpu_time"]) for each in documents for line in each["lines"] if line["of_period"] == 1
    ) / Decimal(3600 * 10**12)
    report = json.loads(run("report", "--window", "1970-01-02", "--ledger", ledger, "--output", "json").out)

    assert hours == Decimal(str(sum(total["gpu_hours"] for total in report["totals"])))


def test_json_has_all_that_the_hash_covers(run: Runner, ledger: Path) -> None:
    found = period_in(run("periods", "1970-01-03", "--ledger", ledger, "--output", "json").out.encode())

    with open_reader(str(ledger)) as reader:
        assert found == reader.closed_periods()[1]
    assert found.computed_hash() == found.hash


def test_a_preview_stores_nothing(run: Runner, ledger: Path) -> None:
    found = run("periods", "1970-01-04", "--preview", "--by", "tenant", "--ledger", ledger)

    assert found.out.startswith("Period 1970-01-04, not closed yet\n")
    assert [line.split()[:3] for line in found.out.splitlines() if line.startswith("1970-01-02  ")] == [
        ["1970-01-02", "red", "1.00"]
    ]
    assert len(run("periods", "--ledger", ledger).out.splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("1970-01-04",), "PERIOD: '1970-01-04' is not closed; the latest closed periods are: 1970-01-02, 1970-01-03"),
        (("--preview",), "--preview: needs a period, such as 2026-10"),
        (("1970-13", "--preview"), "PERIOD: '1970-13' is not a period; use today,"),
        (("1970-01-03", "--preview"), "1970-01-03 begins before the end of 1970-01-03, which is closed"),
        (("1970-01-12", "--preview"), "1970-01-12 is not accounted to its end yet"),
        (("1970-01-04", "--preview", "--time-zone", "Mars"), "--time-zone: unknown time zone 'Mars'"),
    ],
)
def test_a_wrong_period_is_refused(run: Runner, ledger: Path, arguments: tuple[str, ...], problem: str) -> None:
    found = run("periods", *arguments, "--ledger", ledger)

    assert found.status in {2, 4}
    assert found.out == ""
    assert f"gputally: {problem}" in found.err


def test_a_changed_period_is_shown_and_named(run: Runner, ledger: Path) -> None:
    change(ledger, "UPDATE closed_lines SET tenant = 'green' WHERE period = 1 AND tenant = 'blue'")

    listed = run("periods", "--ledger", ledger)
    invoice = run("periods", "1970-01-03", "--ledger", ledger)
    checked = run("ledger", "check", "--ledger", ledger)
    document = json.loads(run("periods", "--ledger", ledger, "--output", "json").out)

    assert [row.split()[-1] for row in listed.out.splitlines()[1:]] == ["no", "no"]
    assert (listed.status, invoice.status, checked.status) == (4, 4, 4)
    problem = "closed period 1970-01-02 was changed: its hash differs"
    assert all(problem in found.err for found in (listed, invoice, checked))
    assert (document["verified"], document["problem"]) == (False, problem)


@pytest.mark.parametrize("output", FORMATS)
def test_a_ledger_without_closed_periods_lists_none(run: Runner, tmp_path: Path, output: str) -> None:
    with SqliteLedger(tmp_path / "l.db") as ledger:
        ledger.write(step(at=1))

    found = run("periods", "--ledger", tmp_path / "l.db", "--output", output)

    assert (found.status, found.err) == (0, "")
    assert "verified" in found.out
    assert "yes" not in found.out


def test_it_leaves_no_files(run: Runner, ledger: Path) -> None:
    before = names(ledger.parent)
    run("periods", "--ledger", ledger, "--output", "markdown")

    assert names(ledger.parent) == before


@pytest.mark.parametrize("output", FORMATS)
def test_the_list_and_an_invoice_are_as_recorded(run: Runner, ledger: Path, golden: Golden, output: str) -> None:
    golden.check(f"periods.{output}", run("periods", "--ledger", ledger, "--output", output).out)
    golden.check(f"invoice.{output}", run("periods", "1970-01-03", "--ledger", ledger, "--output", output).out)

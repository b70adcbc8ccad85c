"""`gputally report --waterfall` prints the same numbers in every format."""

import csv
import io
import json
from decimal import Decimal
from pathlib import Path

import pytest

from gputally.formatting.formats import FORMATS
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.conftest import Golden
from tests.contract.test_waterfall import fill
from tests.unit.commands.sample import CLUSTER, Runner


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """See `fill`."""
    path = tmp_path / "l.db"
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        fill(ledger)
    return path


@pytest.mark.parametrize("output", FORMATS)
def test_a_waterfall_is_as_recorded(run: Runner, ledger: Path, golden: Golden, output: str) -> None:
    flags = ("--ledger", ledger, "--window", "all", "--waterfall", "--by", "tenant", "--output", output)
    found = run("report", *flags)

    assert (found.status, found.err) == (0, "")
    golden.check(f"waterfall.{output}", found.out)


def test_csv_and_json_have_the_same_rows(run: Runner, ledger: Path) -> None:
    flags = ("--ledger", ledger, "--window", "all", "--waterfall", "--by", "tier", "--output")
    rows = list(csv.DictReader(io.StringIO(run("report", *flags, "csv").out)))
    document = json.loads(run("report", *flags, "json").out, parse_float=Decimal)

    shown = [{name: "" if value is None else str(value) for name, value in row.items()} for row in document["rows"]]
    assert rows == shown
    assert [total["tier"] for total in document["totals"]] == ["(all)", "a tier of its own"]


def test_lines_beyond_the_top_ones_are_added_up(run: Runner, ledger: Path) -> None:
    flags = ("--ledger", ledger, "--window", "all", "--waterfall", "--by", "tenant", "--output", "json")
    found = [total["tenant"] for total in json.loads(run("report", *flags, "--top", "1").out)["totals"]]

    assert found == ["(all)", "red", "(others)"]


def test_with_a_filter_it_begins_with_what_was_allocated(run: Runner, ledger: Path) -> None:
    flags = ("--ledger", ledger, "--window", "all", "--waterfall", "--where", "tenant=red", "--output", "json")
    found = json.loads(run("report", *flags).out)

    assert [row["step"] for row in found["rows"] if not row["cause"]] == [
        *("allocated", "running", "measured", "used", "not_lost", "succeeded", "billed")
    ]
    assert found["rows"][0]["gpu_hours"] == 6
    [total] = found["totals"]
    assert (total["billed"], total["price_differences"]) == (30, 16)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--by", "tenant,day"], "--waterfall: cannot be divided by day; choose the period with --window"),
        (["--compare", "previous"], "--waterfall: cannot be combined with --compare; omit one of them"),
        (["--history", "h.db"], "--waterfall: cannot be combined with --history; omit one of them"),
        (["--unallocated"], "--waterfall: cannot be combined with --unallocated; omit one of them"),
        (["--output", "focus"], "--waterfall: cannot be combined with --output focus; omit one of them"),
    ],
)
def test_what_does_not_fit_is_refused(run: Runner, ledger: Path, flags: list[str], message: str) -> None:
    found = run("report", "--ledger", ledger, "--window", "all", "--waterfall", *flags)

    assert (found.status, found.out) == (2, "")
    assert message in found.err


@pytest.mark.parametrize(
    ("flags", "cost", "shared"),
    [
        ([], {"red": 30, "blue": 0}, 0),
        (["--unallocated"], {"red": 30, "blue": 0, "(unallocated)": 83}, 0),
        (["--unallocated", "rows"], {"red": 30, "blue": 0, "(unallocated)": 83}, 0),
        (["--unallocated", "even"], {"red": 30, "blue": 0}, 83),
        (["--unallocated", "weighted", "--where", "gpu_model=*H100*"], {"red": 30, "blue": 0}, 83),
    ],
)
def test_unallocated_cost_has_rows_or_is_shared(
    run: Runner, ledger: Path, flags: list[str], cost: dict[str, int], shared: int
) -> None:
    found = json.loads(run("report", "--ledger", ledger, "--window", "all", "--output", "json", *flags).out)

    assert {row["tenant"]: row["cost"] for row in found["rows"]} == cost
    assert sum(row["unallocated_cost"] for row in found["rows"]) == found["totals"][0]["unallocated_cost"] == shared


def test_a_filter_that_matches_nothing_is_reported(run: Runner, ledger: Path) -> None:
    flags = ("--ledger", ledger, "--window", "all", "--waterfall", "--where", "tenant=visoin")

    assert "\nNo record has tenant visoin: check the spelling.\n" in run("report", *flags).out

"""`gputally waits`: the same numbers in every format, in rows that add up to the total."""

import csv
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gputally.formatting.formats import FORMATS
from tests.conftest import Golden
from tests.fakes.waits_ledger import waits_ledger
from tests.unit.commands.sample import Runner


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """See `waits_ledger`."""
    return waits_ledger(tmp_path)


@pytest.mark.parametrize("output", FORMATS)
def test_waits_are_as_recorded(run: Runner, ledger: Path, golden: Golden, output: str) -> None:
    found = run("waits", "--ledger", ledger, "--window", "all", "--output", output)

    assert (found.status, found.err) == (0, "")
    golden.check(f"waits.{output}", found.out)


def test_a_table_of_pods_without_a_price_has_no_cost(run: Runner, ledger: Path) -> None:
    found = run("waits", "--ledger", ledger, "--window", "all", "--where", "tenant=<blue>")

    heads = next(line for line in found.out.splitlines() if line.startswith("tenant"))
    assert "unpriced" in heads
    assert "cost" not in heads


def document(run: Runner, ledger: Path, *flags: str) -> dict[str, list[dict[str, Any]]]:
    found = run("waits", "--ledger", ledger, "--window", "all", "--output", "json", *flags)
    assert found.status == 0, found.err
    decoded: dict[str, Any] = json.loads(found.out, parse_float=Decimal)
    return decoded


def test_csv_and_json_have_the_same_rows(run: Runner, ledger: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run("waits", "--ledger", ledger, "--window", "all", "--output", "csv").out)))

    found = document(run, ledger)["rows"]
    assert rows == [{name: "" if value is None else str(value) for name, value in row.items()} for row in found]


@pytest.mark.parametrize("by", ["tenant", "tier,cause", "occupying_tier,occupying_tenant", "pod", "day,reason", "hour"])
def test_rows_add_up_to_the_total_and_uncreated_pods_are_not_pending(run: Runner, ledger: Path, by: str) -> None:
    found = document(run, ledger, "--by", by, "--decimals", "3")

    for total in found["totals"]:
        of = [row for row in found["rows"] if (row["pods"], row["currency"]) == (total["pods"], total["currency"])]
        for name in ("gpu_hours", "unpriced", "cost", "share"):
            assert sum(row[name] for row in of) == total[name]
    assert [(each["pods"], each["gpu_hours"]) for each in found["totals"]] == [
        ("pending", Decimal("16.5")),
        ("uncreated", Decimal(40)),
    ]


def test_how_long_each_pod_waited_is_within_the_period(run: Runner, ledger: Path) -> None:
    [pending, uncreated] = document(run, ledger, "--where", "tenant=red")["totals"]

    assert [pending[name] for name in ("count", "p50_seconds", "p90_seconds", "max_seconds")] == [3, 3600, 4500, 4500]
    assert [uncreated[name] for name in ("count", "max_seconds")] == [4, 7200]


def test_of_other_tenants_only_the_tier_is_shown_and_no_filter_finds_them(run: Runner, ledger: Path) -> None:
    flags = ("--by", "occupying_tier,occupying_tenant", "--where", "tenant=red", "--tiers-only")
    found = document(run, ledger, *flags)

    pairs = {(row["occupying_tier"], row["occupying_tenant"]) for row in found["rows"] if row["pods"] == "pending"}
    assert pairs == {("high", "other"), ("nobody", "nobody")}
    assert document(run, ledger, *flags, "--where", "occupying_tenant=b*")["rows"] == []


def test_rows_beyond_the_top_ones_are_added_up(run: Runner, ledger: Path) -> None:
    found = document(run, ledger, "--by", "pod", "--top", "1", "--where", "cause=capacity,idle_allocation")["rows"]

    assert [(row["pod"], row["count"]) for row in found] == [("pod-a", 1), ("(others)", None)]


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--by", "job"), "'job' is not valid; use tier, tenant, namespace, cause"),
        (("--where", "node=a"), "use COLUMN=VALUE with one of tier, tenant"),
    ],
)
def test_a_wrong_flag_is_named_with_its_remedy(
    run: Runner, ledger: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("waits", "--ledger", ledger, *flags)

    assert problem in capsys.readouterr().err


def test_a_period_without_accounting_is_rejected(run: Runner, ledger: Path) -> None:
    found = run("waits", "--ledger", ledger, "--window", "1999")

    assert (found.status, "nothing is accounted in '1999'" in found.err) == (2, True)

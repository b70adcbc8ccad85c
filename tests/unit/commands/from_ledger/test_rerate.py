"""`gputally rerate` compares what a period costs by two price books, and writes nothing."""

import csv
import io
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gputally.formatting.formats import FORMATS
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.price import Asset, Price, Purchase
from gputally.model.units import PICO
from tests.conftest import Golden
from tests.contract.records import FACTS, PRICE, pod, segment, step
from tests.contract.test_unallocated import HOUR, node
from tests.unit.commands.sample import CLUSTER, Runner, dump

H100_SPOT = Asset(instance_type="p5.48xlarge", gpu_model="H100", pool="a", purchase=Purchase.SPOT)
H100 = replace(H100_SPOT, purchase=Purchase.ON_DEMAND)
A100 = Asset(instance_type="p4d.24xlarge", gpu_model="A100", pool="b", labels=(("zone", "z1"),))
L40_SPOT = Asset(instance_type="g6e", gpu_model="L40S", pool="c", purchase=Purchase.SPOT)
ACCOUNTED = 100 * HOUR

RUNNING = """\
kind: PriceBook
name: running
currency: USD
basis: node
tiers: {low: 0.5}
rules:
  - {id: h100-spot, match: {gpu_model: H100}, purchase: spot, price: 2, effective_from: always}
  - {id: h100, match: {instance_type: "p5*"}, price: 5, effective_from: always}
  - {id: a100, match: {labels: {zone: z1}}, price: 3, effective_from: always}
  - {id: l40s, match: {gpu_model: L40S}, purchase: spot, price: 1, effective_from: always}
"""
NEW = RUNNING.replace("name: running", "name: new").replace(
    "price: 2, effective_from: always",
    "prices: [{price: 2, effective_from: always}, {price: 3, effective_from: 1970-01-02}]",
)


def price(rate: str, purchase: Purchase = Purchase.ON_DEMAND, currency: str = "USD") -> Price:
    amount = Decimal(rate)
    return replace(
        PRICE,
        key=f"{rate}{currency}",
        currency=currency,
        per_gpu_hour=amount,
        rate=int(amount * PICO),
        purchase=purchase,
    )


def held(uid: str, start: int, end: int, asset: Asset, paid: Price | None, **more: Any) -> Any:  # noqa: ANN401 - any field of a segment
    """A pod that held a GPU from one hour to another on the node of this asset."""
    labels = {"tier": "high", "gpu_model": asset.gpu_model, "pool": asset.pool, "price": paid, **more}
    return pod(uid, segment(start * HOUR, end * HOUR, **labels), node_uid=f"node-{asset.gpu_model}-{asset.purchase}")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Four nodes, and a pod of a node that was never observed; the node of H100 is spot at first, then on-demand."""
    path = tmp_path / "l.db"
    spot, paid = price("2", Purchase.SPOT), price("5")
    pods = [
        held("a", 10, 30, H100_SPOT, spot),
        held("b", 20, 30, H100, paid, tenant="blue"),
        held("c", 10, 20, A100, price("1.5"), tier="low", tenant="green"),
        held("d", 10, 14, L40_SPOT, price("1", Purchase.SPOT), tenant="blue"),
        held("e", 10, 12, A100, None, tenant="none"),
        pod("f", segment(10 * HOUR, 20 * HOUR, gpu_model="H100", tier="high", tenant="old", price=spot), node_uid=""),
    ]
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        for asset in (H100_SPOT, H100, A100, L40_SPOT):
            facts = replace(FACTS, gpu_model=asset.gpu_model, pool=asset.pool, asset=asset)
            ledger.write(node(f"node-{asset.gpu_model}-{asset.purchase}", (5, facts)))
        ledger.write(step(*pods, at=ACCOUNTED))
    return path


@pytest.fixture
def books(tmp_path: Path) -> dict[str, Path]:
    found = {name: tmp_path / f"{name}.yaml" for name in ("running", "new")}
    found["running"].write_text(RUNNING)
    found["new"].write_text(NEW)
    return found


def document(run: Runner, ledger: Path, *flags: str | Path) -> dict[str, Any]:
    found = run("rerate", "--ledger", ledger, "--window", "all", "--output", "json", *flags)
    assert found.status == 0
    parsed: dict[str, Any] = json.loads(found.out)
    return parsed


FIELDS = ("before", "after", "difference")


def by_tenant(found: dict[str, Any], *fields: str) -> dict[str, tuple[float | None, ...]]:
    return {row["tenant"]: tuple(row[name] for name in fields) for row in found["rows"]}


@pytest.mark.parametrize("output", FORMATS)
def test_a_comparison_is_as_recorded(
    run: Runner, ledger: Path, books: dict[str, Path], golden: Golden, output: str
) -> None:
    found = run("rerate", "--ledger", ledger, "--window", "all", "--prices", books["new"], "--output", output)

    assert found.status == 0
    golden.check(f"rerate.{output}", found.out)


def test_by_the_book_that_was_in_force_only_what_was_unpriced_differs(
    run: Runner, ledger: Path, books: dict[str, Path]
) -> None:
    found = document(run, ledger, "--prices", books["running"])

    assert by_tenant(found, *FIELDS, "newly_priced", "unpriced_before") == {
        "red": (40, 40, 0, 0, 0),
        "blue": (54, 54, 0, 0, 0),
        "green": (15, 15, 0, 0, 0),
        "none": (None, 6, None, 6, 2),
        "old": (20, 20, 0, 0, 0),
    }
    assert found["unobserved_nodes_gpu_hours"] == 10


def test_a_new_price_counts_from_its_date_on(run: Runner, ledger: Path, books: dict[str, Path]) -> None:
    found = document(run, ledger, "--prices", books["new"], "--by", "tenant,day", "--where", "tenant=red")

    assert [(row["day"], row["before"], row["after"], row["difference"]) for row in found["rows"]] == [
        ("1970-01-01", 28, 28, 0),
        ("1970-01-02", 12, 18, 6),
    ]
    assert found["totals"][0]["change"] == 15.0


def test_two_books_are_compared_whatever_was_recorded(run: Runner, ledger: Path, books: dict[str, Path]) -> None:
    found = document(run, ledger, "--prices", books["new"], "--against", books["running"])

    assert by_tenant(found, *FIELDS, "unpriced_before") == {
        "red": (40, 46, 6, 0),
        "blue": (54, 54, 0, 0),
        "green": (15, 15, 0, 0),
        "none": (6, 6, 0, 0),
        "old": (20, 20, 0, 0),
    }
    assert (found["before"]["name"], found["after"]["name"]) == ("running", "new")


def test_spot_saved_the_difference_to_the_price_on_demand(run: Runner, ledger: Path, books: dict[str, Path]) -> None:
    """The node of pod f is not known, so neither is its instance type; L40S has no price on demand."""
    found = document(run, ledger, "--prices", books["running"], "--purchase", "on-demand", "--where", "purchase=spot")

    assert by_tenant(found, *FIELDS, "unpriced_after", "no_longer_priced") == {
        "red": (40, 100, 60, 0, 0),
        "blue": (4, None, None, 4, 4),
        "old": (20, None, None, 10, 20),
    }
    assert (found["purchase"], found["totals"][0]["difference"], found["totals"][0]["unpriced_after"]) == (
        "on-demand",
        60,
        14,
    )


def test_only_spot_nodes_are_bought_otherwise(run: Runner, ledger: Path, books: dict[str, Path]) -> None:
    reserved = "  - {id: reserved, match: {default: true}, purchase: reserved, price: 0.5, effective_from: always}\n"
    books["new"].write_text(RUNNING.replace("rules:\n", f"rules:\n{reserved}"))
    found = document(run, ledger, "--prices", books["new"], "--purchase", "reserved")

    assert by_tenant(found, *FIELDS) == {
        "red": (40, 10, -30),
        "blue": (54, 52, -2),
        "green": (15, 15, 0),
        "none": (None, 6, None),
        "old": (20, 5, -15),
    }


def test_imported_jobs_are_rated_by_their_model(
    run: Runner, ledger: Path, books: dict[str, Path], tmp_path: Path
) -> None:
    jobs, history = tmp_path / "jobs.csv", tmp_path / "history.db"
    jobs.write_text("id,submit,start,end,status,gpu_count,gpu_type\n7,0,0,900,COMPLETED,4,L40S\n")
    assert run("import", jobs, "--zero", "1970-01-01", "--ledger", history).status == 0
    books["new"].write_text(NEW.replace("gpu_model: L40S}, purchase: spot", "gpu_model: L40S}"))
    window = ("--history", history, "--window", "1970-01-01T00:00/1970-01-01T00:15")

    rated = run("rerate", "--ledger", ledger, "--prices", books["new"], *window, "--by", "job", "--output", "json")
    explained = run("explain", "--ledger", ledger, *window)

    [row] = json.loads(rated.out)["rows"]
    assert (row["job"], row["gpu_hours"], row["after"], row["estimated"]) == ("7", 1, 1, 1)
    assert "UID import/7, recorded" in explained.out
    assert "total of 1 pod\n  1.00 GPU-hours\n" in explained.out


def test_rows_add_up_to_their_total_and_parts_to_their_difference(
    run: Runner, ledger: Path, books: dict[str, Path]
) -> None:
    for decimals in ("0", "1", "6"):
        flags = ("--prices", books["new"], "--purchase", "on-demand", "--by", "hour", "--decimals", decimals)
        found = document(run, ledger, *flags, "--top", "7")
        [total] = found["totals"]
        for name in ("gpu_hours", "before", "after", "newly_priced", "no_longer_priced", "estimated"):
            assert sum(Decimal(str(row[name] or 0)) for row in found["rows"]) == Decimal(str(total[name]))
        for row in (*found["rows"], total):
            values = {
                name: Decimal(str(row[name] or 0)) for name in row if name not in ("hour", "currency", "currency_after")
            }
            assert values["after"] == (
                values["before"] + values["difference"] + values["newly_priced"] - values["no_longer_priced"]
            )


def test_costs_in_different_currencies_have_no_difference(run: Runner, ledger: Path, books: dict[str, Path]) -> None:
    books["new"].write_text(NEW.replace("USD", "EUR"))
    found = document(run, ledger, "--prices", books["new"], "--where", "tenant=red")
    table = run("rerate", "--ledger", ledger, "--window", "all", "--prices", books["new"]).out

    [row] = found["rows"]
    assert (row["before"], row["currency"], row["after"], row["currency_after"]) == (40, "USD", 46, "EUR")
    assert (row["difference"], row["change"]) == (None, None)
    assert "before USD  after EUR" in table
    assert "difference" not in table


def test_labels_that_the_ledger_did_not_store_are_named(run: Runner, ledger: Path, books: dict[str, Path]) -> None:
    """Rules on other labels that are decided before it, or that other properties exclude, do not matter."""
    rule = "  - {id: racks, match: {labels: {rack: r1}, gpu_model: H100}, price: 9, effective_from: always}\n"
    late = rule.replace("racks", "late").replace("H100", "A100")
    books["new"].write_text(NEW.replace("rules:\n", f"rules:\n{rule}") + late)
    found = run("rerate", "--ledger", ledger, "--window", "all", "--prices", books["new"], "--output", "csv")
    rows = {row["tenant"]: row["estimated"] for row in csv.DictReader(io.StringIO(found.out))}

    assert rows == {
        "red": "20.000000",
        "blue": "10.000000",
        "green": "0.000000",
        "none": "0.000000",
        "old": "10.000000",
    }
    assert (
        "the price of 30.00 GPU-hours depends on the node label rack, which the ledger may not have stored" in found.err
    )
    assert "10.00 GPU-hours are on nodes that were never observed" in found.err


def test_a_book_from_standard_input(
    run: Runner, ledger: Path, books: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(NEW.encode())))

    assert document(run, ledger, "--prices", "-", "--against", books["running"])["after"]["name"] == "new"
    both = run("rerate", "--ledger", ledger, "--prices", "-", "--against", "-")
    assert (both.status, both.err) == (2, "gputally: --against: standard input is one price book; name a file\n")


def test_problems_of_both_books_are_named_before_anything_is_read(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(RUNNING.replace("USD", "DOLLARS"))
    flags = ("--prices", tmp_path / "none.yaml", "--against", tmp_path / "bad.yaml")
    found = run("rerate", "--ledger", tmp_path / "none.db", *flags)

    assert (found.status, found.out) == (2, "")
    assert f"{tmp_path / 'none.yaml'}:" in found.err
    assert f"{tmp_path / 'bad.yaml'}: currency:" in found.err
    assert "none.db" not in found.err


def test_it_changes_nothing(run: Runner, ledger: Path, books: dict[str, Path]) -> None:
    before = dump(ledger)

    assert run("rerate", "--ledger", ledger, "--window", "all", "--prices", books["new"]).status == 0
    assert dump(ledger) == before


def test_nothing_to_rate_is_said(run: Runner, ledger: Path, books: dict[str, Path]) -> None:
    flags = ("--window", "all", "--prices", books["new"], "--where", "tenant=visoin")
    found = run("rerate", "--ledger", ledger, *flags)

    assert (found.status, found.err) == (0, "gputally: No record has tenant visoin: check the spelling.\n")

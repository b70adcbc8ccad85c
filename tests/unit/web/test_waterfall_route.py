"""Waterfalls and unallocated capacity over HTTP: nobody learns the capacity of a cluster from a tenant's view."""

import csv
import io
from pathlib import Path

import pytest

from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.api.paths import REPORT_PATH
from gputally.web.access_policy import AccessPolicy, digest
from gputally.web.report_routes import PAGE_PATH
from tests.contract.test_waterfall import fill
from tests.unit.web.test_report_route import ALL, served

WATERFALL = ALL | {"waterfall": "true"}
RED = AccessPolicy(tokens={digest("t"): "anna"}, tenants={"anna": frozenset({"red"})})


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Tenants red and blue on a node that is mostly free, see `fill`."""
    path = tmp_path / "l.db"
    with SqliteLedger(path) as ledger:
        ledger.bind("cluster")
        fill(ledger)
    return path


async def test_it_begins_with_the_capacity_of_the_cluster(ledger: Path) -> None:
    async with served(ledger) as client, client.get(REPORT_PATH, params=WATERFALL | {"by": "tenant"}) as answer:
        document = await answer.json()

    levels = [row["step"] for row in document["rows"] if row["tenant"] == "(all)" and not row["cause"]]
    assert levels == ["capacity", "allocated", "running", "measured", "used", "not_lost", "succeeded", "billed"]
    assert {row["tenant"] for row in document["rows"]} == {"(all)", "red", "blue"}


async def test_a_user_of_one_tenant_gets_its_steps_and_nothing_of_the_cluster(ledger: Path) -> None:
    async with served(ledger, RED) as client:
        for asked in ({}, {"by": "tenant"}, {"by": "gpu_model"}, {"tenant": "*"}, {"tenant": "red"}):
            async with client.get(REPORT_PATH, params=WATERFALL | asked) as answer:
                document = await answer.json()
            rows = document["rows"]
            assert {row.get("tenant", "red") for row in rows} <= {"(all)", "red"}
            assert {row["gpu_hours"] for row in rows if (row["step"], row["cause"]) == ("allocated", "")} == {6}
            assert not {"capacity", "free"} & {name for row in rows for name in (row["step"], row["cause"])}
        async with client.get(REPORT_PATH, params=WATERFALL | {"tenant": "blue"}) as answer:
            assert (await answer.json())["rows"] == []


async def test_a_user_of_one_tenant_gets_no_unallocated_capacity(ledger: Path) -> None:
    async with served(ledger, RED) as client:
        for sharing in ("rows", "even", "weighted"):
            async with client.get(REPORT_PATH, params=ALL | {"unallocated": sharing}) as answer:
                assert answer.status == 400
                assert (await answer.text()).startswith("unallocated: such capacity is no tenant's, and your user is ")


async def test_unallocated_capacity_can_be_shared(ledger: Path) -> None:
    asked = ALL | {"unallocated": "weighted", "format": "csv"}

    async with served(ledger) as client, client.get(REPORT_PATH, params=asked) as answer:
        rows = {row["tenant"]: row for row in csv.DictReader(io.StringIO(await answer.text()))}

    assert {tenant: float(row["unallocated_cost"]) for tenant, row in rows.items()} == {"red": 83, "blue": 0}


async def test_the_page_draws_it(ledger: Path) -> None:
    async with served(ledger) as client, client.get(PAGE_PATH, params=ALL | {"waterfall": "true"}) as answer:
        page = await answer.text()

    assert answer.status == 200, page
    assert "From capacity to use, at prices of capacity" in page
    assert '<th scope="row">in jobs that succeeded</th><td class="number">0.50</td>' in page
    assert "A useful GPU-hour, in jobs that succeeded, costs 208.00 CHF" in page


async def test_the_page_of_one_tenant_begins_with_what_it_held(ledger: Path) -> None:
    async with served(ledger, RED) as client, client.get(PAGE_PATH, params=ALL | {"waterfall": "true"}) as answer:
        page = await answer.text()

    assert "From allocated to use, at prices of capacity" in page
    assert "free" not in page

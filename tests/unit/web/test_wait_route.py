"""`/api/v1/waits`: what the command prints, and of other tenants that hold GPUs only the tier."""

from pathlib import Path

import pytest

from gputally.model.api.paths import WAITS_PATH
from gputally.web.access_policy import AccessPolicy, digest
from tests.fakes.tenants_ledger import BLUE, RED
from tests.fakes.waits_ledger import waits_ledger
from tests.unit.web.test_report_route import ALL, served


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """See `waits_ledger`."""
    return waits_ledger(tmp_path)


async def test_all_waits_are_rows_by_the_dimensions_that_are_asked_for(ledger: Path) -> None:
    async with served(ledger) as client, client.get(WAITS_PATH, params=ALL | {"by": "tenant,cause"}) as answer:
        found = await answer.json()

    assert {(row["tenant"], row["cause"], row["pods"]) for row in found["rows"]} == {
        (RED, "idle_allocation", "pending"),
        (RED, "other", "pending"),
        (RED, "capacity", "pending"),
        (BLUE, "idle_allocation", "pending"),
        (RED, "quota", "uncreated"),
    }
    assert found["row_count"] == 5


async def test_a_user_of_one_tenant_gets_its_waits_and_of_others_only_the_tier(ledger: Path) -> None:
    policy = AccessPolicy(tokens={digest("t"): "anna"}, tenants={"anna": frozenset({RED})})
    by = ALL | {"by": "tenant,occupying_tier,occupying_tenant"}

    async with served(ledger, policy) as client:
        for asked in ({}, {"tenant": "*"}, {"tenant": BLUE}, {"occupying_tenant": "<*"}, {"format": "html"}):
            async with client.get(WAITS_PATH, params=by | asked) as answer:
                assert answer.status == 200
                text = await answer.text()
                assert "blue" not in text.split('"rows"')[-1]  # what precedes repeats the filter
        async with client.get(WAITS_PATH, params=by) as answer:
            rows = (await answer.json())["rows"]
    assert {(row["tenant"], row["occupying_tier"], row["occupying_tenant"]) for row in rows} == {
        (RED, "high", "other"),
        (RED, "nobody", "nobody"),
    }


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"by": "job"}, "by: 'job' is not valid; use tier, tenant"),
        ({"node": "a"}, "unknown parameter node; use window, cut_off, "),
        ({"format": "focus"}, "format: 'focus' is not valid; use json, table, markdown, html, csv"),
    ],
)
async def test_a_wrong_parameter_is_named_with_its_remedy(ledger: Path, asked: dict[str, str], problem: str) -> None:
    async with served(ledger) as client, client.get(WAITS_PATH, params=asked) as answer:
        assert (answer.status, problem in await answer.text()) == (400, True)

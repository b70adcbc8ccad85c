"""`/api/v1/preemptions`: what the command prints, and of others' pods only the tier."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.api.paths import PREEMPTIONS_PATH
from gputally.model.disruptions import Cause
from gputally.web.access_policy import AccessPolicy, digest
from tests.contract.records import BY, BY_QUEUE, DISRUPTION, step, us
from tests.fakes.tenants_ledger import BLUE, RED, tenants_ledger
from tests.unit.web.test_report_route import ALL, rows, served

AT = us(1500)
TAKEN = replace(
    DISRUPTION, cause=Cause.PREEMPTION, victim_tenant=RED, decided_us=AT, noticed_us=AT, budget_violated=True, by=BY
)
DRAINED = replace(TAKEN, budget_violated=None, by=None, cause=Cause.EVICTION, victim_uid="b", victim_tenant=BLUE)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tenants_ledger(tmp_path)
    with SqliteLedger(path) as ledger:
        ledger.write(step(at=100_000, victims={each.victim_uid: each for each in (TAKEN, DRAINED)}))
    return path


async def test_all_disruptions_are_rows_with_their_preemptors(ledger: Path) -> None:
    async with served(ledger) as client, client.get(PREEMPTIONS_PATH, params=ALL) as answer:
        found = await rows(answer, "id")

    assert {uid: row["preemptor"] for uid, row in found.items()} == {"a": "pod-b", "b": None}


async def test_it_is_said_whether_a_disruption_violated_a_budget_and_null_if_nobody_knows(ledger: Path) -> None:
    async with served(ledger) as client, client.get(PREEMPTIONS_PATH, params=ALL) as answer:
        found = await rows(answer, "id")

    assert {uid: row["budget_violated"] for uid, row in found.items()} == {"a": True, "b": None}


async def test_a_user_of_one_tenant_gets_its_victims_and_of_preemptors_only_the_tier(ledger: Path) -> None:
    policy = AccessPolicy(tokens={digest("t"): "anna"}, tenants={"anna": frozenset({RED})})

    async with served(ledger, policy) as client:
        for asked in ({}, {"tenant": "*"}, {"tenant": BLUE}):
            async with client.get(PREEMPTIONS_PATH, params=ALL | asked) as answer:
                assert (await rows(answer, "id")).keys() <= {"a"}
        async with client.get(PREEMPTIONS_PATH, params=ALL) as answer:
            text = await answer.text()
            [row] = (await answer.json())["rows"]
    assert row["preemptor_tier"] == "high"
    assert (row["preemptor"], row["preemptor_namespace"], row["preemptor_uid"]) == (None, None, None)
    assert "pod-b" not in text


async def test_of_the_workload_for_which_a_queue_preempted_others_get_the_tier_and_the_gpus(ledger: Path) -> None:
    with SqliteLedger(ledger) as written:
        written.write(step(at=100_001, live=None, victims={"a": replace(TAKEN, by=BY_QUEUE)}))
    policy = AccessPolicy(tokens={digest("t"): "anna"}, tenants={"anna": frozenset({RED})})

    async with served(ledger) as client, client.get(PREEMPTIONS_PATH, params=ALL) as answer:
        own = (await rows(answer, "id"))["a"]
    async with served(ledger, policy) as client, client.get(PREEMPTIONS_PATH, params=ALL) as answer:
        text = await answer.text()
        [row] = (await answer.json())["rows"]

    assert (own["preemptor_kind"], own["preemptor_namespace"], own["preemptor"]) == ("RayJob", "serve", "llm")
    assert (own["preemptor_uid"], own["preemptor_tenant"]) == ("wl", "blue")
    for each in (own, row):
        assert (each["preemptor_tier"], each["preemptor_gpus"]) == ("high", 3)
        assert (each["queue_rule"], each["is_preemptor_inferred"]) == ("InCohortReclamation", False)
    assert not [word for word in ("RayJob", "serve", "llm", '"wl"', "blue") if word in text]


@pytest.mark.parametrize(
    ("asked", "uids"), [({"cause": "eviction"}, {"b"}), ({"tier": "low"}, {"a", "b"}), ({"job": "none"}, set())]
)
async def test_parameters_choose_the_rows(ledger: Path, asked: dict[str, str], uids: set[str]) -> None:
    async with served(ledger) as client, client.get(PREEMPTIONS_PATH, params=ALL | asked) as answer:
        assert (await rows(answer, "id")).keys() == uids


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"cause": "bad luck"}, "cause: 'bad luck' is not valid; use preemption, "),
        ({"by": "tenant"}, "by: 'tenant' is not valid; use pod, job"),
        ({"by": "job", "cause": "eviction"}, "cause: by job lists only preemptions"),
        ({"victim": "a"}, "unknown parameter victim; use window, cut_off, "),
        ({"format": "focus"}, "format: 'focus' is not valid; use json, table, markdown, html, csv"),
        ({"window": "never"}, "window: 'never' is not a period; use today"),
    ],
)
async def test_a_wrong_parameter_is_named_with_its_remedy(ledger: Path, asked: dict[str, str], problem: str) -> None:
    async with served(ledger) as client, client.get(PREEMPTIONS_PATH, params=asked) as answer:
        assert answer.status == 400
        assert problem in await answer.text()


async def test_csv_can_be_downloaded(ledger: Path) -> None:
    async with served(ledger) as client, client.get(PREEMPTIONS_PATH, params=ALL | {"format": "csv"}) as answer:
        head, *lines = (await answer.text()).splitlines()
        assert answer.content_type == "text/csv"
    assert head.startswith("id,decided,cause,")
    assert [line.split(",")[0] for line in lines] == ["a", "b"]


async def test_the_table_of_the_command_is_plain_text_for_browsers(ledger: Path) -> None:
    period = {"window": "1970-01-01T00:20:00.000Z/1970-01-02T00:00:00.000Z"}  # as Grafana writes times in links

    async with (
        served(ledger) as client,
        client.get(PREEMPTIONS_PATH, params=period | {"format": "table", "tier": "low"}) as answer,
    ):
        text = await answer.text()
        assert (answer.status, answer.content_type) == (200, "text/plain")
    about = "1970-01-01 00:20:00 to 1970-01-02 00:00:00 UTC, cut-off 1970-01-02 03:46:40 UTC, tier low"
    assert text.startswith(f"Disrupted pods from {about}\n")
    assert "by tier  pods  gpus  bought GPU-h  lost GPU-h  stalled GPU-h  stranded GPU-h" in text

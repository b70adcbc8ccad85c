"""`/api/v1/preemptions?by=job`: one record for each preemption of a job, and of others' pods only the tier."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gputally.formatting.formats import FORMATS
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.api.paths import PREEMPTIONS_PATH
from gputally.model.disruptions import Preemptor
from gputally.web.access_policy import AccessPolicy, digest
from tests.contract.records import BY, PREEMPTED, step, us
from tests.fakes.tenants_ledger import BLUE, RED, tenants_ledger
from tests.unit.web.test_report_route import ALL, rows, served

AT = us(1500)
ASKED = {**ALL, "by": "job"}
PREEMPTOR = Preemptor(
    uid="by", namespace="secret", name="hidden", tier="high", tenant=BLUE, priority=1234, class_name="classified"
)
RULE = "priority 1234 of class classified is above priority 5 of class low, policy PreemptLowerPriority"
KNOWN = replace(BY, preemptor=PREEMPTOR, victim_priority=5, victim_class="low")
FIRST = replace(PREEMPTED, victim_tenant=RED, decided_us=AT, noticed_us=AT, job_preemption="a", by=KNOWN)
SECOND = replace(FIRST, victim_uid="b", victim_name="pod-b", node="n2")
OTHERS = replace(FIRST, victim_uid="c", job="other", victim_tenant=BLUE, job_preemption="c")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tenants_ledger(tmp_path)
    with SqliteLedger(path) as ledger:
        ledger.write(step(at=100_000, victims={each.victim_uid: each for each in (FIRST, SECOND, OTHERS)}))
    return path


async def test_pods_that_were_preempted_together_are_one_record(ledger: Path) -> None:
    async with served(ledger) as client, client.get(PREEMPTIONS_PATH, params=ASKED) as answer:
        found = await rows(answer, "id")

    assert {uid: row["pods"] for uid, row in found.items()} == {"a": ["pod-a", "pod-b"], "c": ["pod-a"]}
    assert (found["a"]["gpus"], found["a"]["nodes"]) == (2, ["n1", "n2"])
    assert found["a"]["preemptors"] == ["secret/hidden"]
    assert found["a"]["rules"] == [RULE]


@pytest.mark.parametrize("form", FORMATS)
async def test_a_user_of_one_tenant_gets_its_records_and_of_others_only_the_tier(ledger: Path, form: str) -> None:
    policy = AccessPolicy(tokens={digest("t"): "anna"}, tenants={"anna": frozenset({RED})})

    async with served(ledger, policy) as client:
        for asked in ({}, {"tenant": "*"}, {"tenant": BLUE}, {"job": "other"}, {"node": "n2"}):
            async with client.get(PREEMPTIONS_PATH, params=ASKED | asked | {"format": form}) as answer:
                text = await answer.text() if form != "json" else str((await answer.json())["rows"])
                text = _records(text) if form in ("table", "markdown", "html") else text
                assert answer.status == 200
                assert not any(word in text for word in ("hidden", "secret", "classified", "1234", "other", "blue"))
    assert "high" in text


def _records(text: str) -> str:
    """Without the lines that repeat the request, and without the name of the list."""
    lines = text.splitlines()[1:]
    shown = "\n".join(line for line in lines if not line.startswith(("No record", "<p>No record", "<p>From")))
    return shown.replace("preemptions and other disruptions", "preemptions")


@pytest.mark.parametrize(
    ("asked", "uids"),
    [({"tenant": BLUE}, {"c"}), ({"pod": "pod-b"}, {"a"}), ({"node": "n1"}, {"a", "c"}), ({"job": "none"}, set())],
)
async def test_parameters_choose_whole_records(ledger: Path, asked: dict[str, str], uids: set[str]) -> None:
    async with served(ledger) as client, client.get(PREEMPTIONS_PATH, params=ASKED | asked) as answer:
        found = await rows(answer, "id")

    assert found.keys() == uids
    assert all(len(row["pods"]) == (2 if uid == "a" else 1) for uid, row in found.items())


async def test_records_are_sent_by_pages(ledger: Path) -> None:
    async with served(ledger) as client, client.get(PREEMPTIONS_PATH, params=ASKED | {"limit": "1"}) as answer:
        document = await answer.json()
        assert (document["row_count"], len(document["rows"])) == (2, 1)
        async with client.get(document["next"]) as second:
            assert (await rows(second, "id")).keys() == {"c"}

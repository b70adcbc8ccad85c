"""`/api/v1/report` and `/report` over real sockets, with the real command on a real ledger."""

import csv
import io
import json
import re
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientResponse, ClientSession
from msgspec.structs import replace

from gputally.formatting.html_pages import html_template
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.allocation import Gap
from gputally.model.api.paths import PREEMPTIONS_PATH, REPORT_PATH, WAITS_PATH
from gputally.model.lost_work import CheckpointSource, LostPod
from gputally.model.unaccounted import Unaccounted, UnaccountedDay
from gputally.model.units import US_PER_DAY
from gputally.questions.report import Report
from gputally.web import ledger_process, report_page, report_processes
from gputally.web.access_policy import AccessPolicy, digest
from gputally.web.report_processes import ReportRunner
from gputally.web.report_requests import parameter_names
from gputally.web.report_routes import OPENAPI_PATH, PAGE_PATH, report_routes
from gputally.web.server import serve
from tests.contract.records import LOST_WORK, pod, segment, step, us
from tests.fakes.tenants_ledger import BLUE, HOUR, PODS, RED, tenants_ledger
from tests.unit.web.test_server import site

if TYPE_CHECKING:
    from jinja2 import Template

ALL = {"window": "all"}
DAY = 86_400


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tenants_ledger(tmp_path)


@asynccontextmanager
async def served(ledger: Path, policy: AccessPolicy | None = None) -> AsyncIterator[ClientSession]:
    """A client of the routes, with the token of the policy's only user, if there is one."""
    headers = {"Authorization": "Bearer t"} if policy else {}
    async with (
        ReportRunner(str(ledger)) as runner,
        serve(
            site(routes=report_routes(runner, version="1.2.3")),
            addresses=["127.0.0.1:0"],
            policy_source=lambda: policy or AccessPolicy(),
        ) as [address],
        ClientSession(f"http://{address}", headers=headers) as client,
    ):
        yield client


async def rows(answer: ClientResponse, column: str = "tenant") -> dict[str, Any]:
    assert answer.status == 200, await answer.text()
    return {row[column]: row for row in (await answer.json())["rows"]}


async def test_it_is_the_report_of_the_ledger(ledger: Path) -> None:
    async with served(ledger) as client, client.get(REPORT_PATH, params=ALL) as answer:
        found = await rows(answer)

    hours = {tenant: row["gpu_hours"] for tenant, row in found.items()}
    assert hours == {RED: 3.0, BLUE: 1.0, f"{BLUE}s": 2.0}


async def test_named_hours_divide_a_report(ledger: Path) -> None:
    asked = ALL | {"by": "hours", "hours": "always=Mon-Sun 0-24"}
    async with served(ledger) as client, client.get(REPORT_PATH, params=asked) as answer:
        found = await rows(answer, "hours")
    async with served(ledger) as client, client.get(REPORT_PATH, params=ALL) as answer:
        total = (await answer.json())["totals"][0]["gpu_hours"]

    assert found.keys() == {"always"}
    assert sum(row["gpu_hours"] for row in found.values()) == total


async def test_a_user_of_one_tenant_gets_its_lines_and_nothing_of_the_others(ledger: Path) -> None:
    policy = AccessPolicy(tokens={digest("t"): "anna"}, tenants={"anna": frozenset({BLUE})})

    async with served(ledger, policy) as client:
        for asked in ({}, {"tenant": "*"}, {"tenant": f"{BLUE}s"}):
            async with client.get(REPORT_PATH, params=ALL | asked) as answer:
                assert (await rows(answer)).keys() <= {BLUE}
        async with client.get(REPORT_PATH, params=ALL | {"by": "job"}) as answer:
            assert (await rows(answer, "job")).keys() == {"infer"}
        async with client.get(PAGE_PATH, params=ALL) as answer:
            page = await answer.text()
    assert "&lt;blue&gt;" in page
    assert "&lt;blue&gt;s" not in page


async def test_pages_follow_each_other_and_have_all_rows_once(ledger: Path) -> None:
    found: list[str] = []
    async with served(ledger) as client:
        address: str | None = f"{REPORT_PATH}?window=all&limit=2"
        while address:
            async with client.get(address) as answer:
                document = await answer.json()
            assert document["row_count"] == 3
            assert len(document["rows"]) <= 2
            found += [row["tenant"] for row in document["rows"]]
            address = document["next"]

    assert sorted(found) == sorted({RED, BLUE, f"{BLUE}s"})


async def test_later_pages_of_an_answer_are_of_its_cut_off_whatever_the_ledger_learned(ledger: Path) -> None:
    async with served(ledger) as client:
        async with client.get(REPORT_PATH, params=ALL | {"limit": "1"}) as answer:
            first = await answer.json()
        with SqliteLedger(ledger) as writer:
            writer.write(step(replace(PODS[2], revision=2, end_us=us(2 * HOUR)), at=9 * HOUR, live=None))
        async with client.get(first["next"]) as answer:
            second = await answer.json()
        async with client.get(REPORT_PATH, params=ALL | {"by": "job", "cut_off": first["cut_off"]}) as answer:
            other = await answer.json()
        async with client.get(REPORT_PATH, params=ALL | {"by": "job"}) as answer:
            now = await answer.json()

    assert first["cut_off"] == second["cut_off"] == other["cut_off"] == "1970-01-01T05:00:00Z"
    assert first["totals"] == second["totals"]
    assert (other["window"]["to"], now["window"]["to"]) == ("1970-01-01T05:00:00Z", "1970-01-01T09:00:00Z")


async def test_an_answer_is_kept_for_a_minute_by_its_cut_off_too_however_often_it_is_asked_for(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=100.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(report_processes, "time", clock)
    found: list[float] = []
    async with served(ledger) as client:
        async with client.get(REPORT_PATH, params=ALL) as answer:
            at_first = ALL | {"cut_off": (await answer.json())["cut_off"]}
        with SqliteLedger(ledger) as writer:
            shorter = pod("c", segment(HOUR, 2 * HOUR, tenant=f"{BLUE}s", price=None), namespace="other")
            writer.write(step(replace(shorter, revision=2), at=9 * HOUR, live=None))
        for clock.now, asked in ((159.0, ALL), (159.0, at_first), (161.0, at_first)):
            async with client.get(REPORT_PATH, params=asked) as answer:
                found.append((await answer.json())["totals"][0]["gpu_hours"])

    assert found == [6.0, 6.0, 5.0]


async def test_the_tables_of_the_page_its_files_and_its_link_are_of_one_moment(ledger: Path) -> None:
    asked = {"window": "today", "compare": "1970-01-01T01:00/1970-01-01T02:00", "waterfall": "true"}
    async with served(ledger) as client:
        async with client.get(PAGE_PATH, params=asked) as answer:
            page = unescape(await answer.text())
        with SqliteLedger(ledger) as writer:
            writer.write(step(at=9 * HOUR, live=None))
        links = [each for each in re.findall(r'href="([^"]*)"', page) if "window=" in each]
        again = {each: await (await client.get(f"{PAGE_PATH}{each}")).text() for each in links if each[0] == "?"}
        [document] = [await (await client.get(each)).json() for each in links if "format=json" in each]

    assert "All tables count up to 1970-01-01 05:00:00" in page
    assert len(links) == 5
    assert all("cut_off=1970-01-01T05%3A00%3A00Z" in each for each in links)
    assert [unescape(each) for each in again.values()] == [page]
    assert document["window"]["to"] == "1970-01-01T05:00:00Z"
    assert page.count("<table>") == 4


async def test_an_unchanged_report_is_not_sent_again(ledger: Path) -> None:
    async with served(ledger) as client:
        async with client.get(REPORT_PATH, params=ALL) as answer:
            tag = answer.headers["ETag"]
        async with client.get(REPORT_PATH, params=ALL, headers={"If-None-Match": tag}) as answer:
            assert (answer.status, await answer.read()) == (304, b"")
        async with client.get(REPORT_PATH, params=ALL | {"by": "tier"}, headers={"If-None-Match": tag}) as answer:
            assert answer.status == 200


async def test_csv_can_be_downloaded(ledger: Path) -> None:
    async with served(ledger) as client, client.get(REPORT_PATH, params=ALL | {"format": "csv"}) as answer:
        assert answer.content_type == "text/csv"
        assert len(list(csv.DictReader(io.StringIO(await answer.text())))) == 3


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"by": "color"}, "by: 'color' is not valid; use tier, "),
        ({"window": "<b>"}, "window: '<b>' is not a period; use today"),
        ({"top": "--ledger=/x"}, "top: '--ledger=/x' is not valid"),
        ({"top": "9" * 5000}, f"top: '{'9' * 40}' is not valid; use a number from 1 to 999999999\n"),
        ({"offset": "9" * 5000}, f"offset '{'9' * 5000}' is not valid; use a number up to 1000000000\n"),
        ({"window": "1999"}, "window: nothing is accounted in '1999'"),
        (
            {"cut_off": "2000-01-01"},
            "cut_off: the ledger accounts 1970-01-01 00:16:40 to 1970-01-01 05",
        ),
    ],
)
async def test_a_wrong_parameter_is_named_with_its_remedy(ledger: Path, asked: dict[str, str], problem: str) -> None:
    async with served(ledger) as client, client.get(REPORT_PATH, params=asked) as answer:
        assert answer.status == 400
        assert (await answer.text()).startswith(problem)


async def test_the_page_shows_what_is_wrong_as_text(ledger: Path) -> None:
    async with served(ledger) as client, client.get(PAGE_PATH, params={"window": "<b>"}) as answer:
        page = await answer.text()

    assert answer.status == 400
    assert "<b>" not in page
    assert "&#39;&lt;b&gt;&#39; is not a period" in page


@pytest.mark.parametrize("window", ["all", "never"])
async def test_a_thread_makes_the_page_as_the_first_one_imports_its_templates(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, window: str
) -> None:
    threads = list[int]()

    def template(*of: str) -> "Template":
        threads.append(threading.get_ident())
        return html_template(*of)

    monkeypatch.setattr(report_page, "html_template", template)
    async with served(ledger) as client, client.get(PAGE_PATH, params={"window": window}) as answer:
        assert (await answer.text()).endswith("</html>")

    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_the_page_has_tables_with_their_total_and_explains_a_change(ledger: Path) -> None:
    asked = {"window": "1970-01-01T02:00/1970-01-01T03:00", "compare": "1970-01-01T01:00/1970-01-01T02:00"}

    async with served(ledger) as client, client.get(PAGE_PATH, params=asked) as answer:
        page = await answer.text()

    assert answer.status == 200, page
    assert page.count("<table>") == 3
    assert "Change since the period from 1970-01-01 01:00:00 to 1970-01-01 02:00:00" in page
    assert "nobserved" not in page
    assert "form-action 'self'" in answer.headers["Content-Security-Policy"]


async def test_the_page_and_the_api_name_a_filter_that_no_record_has(ledger: Path) -> None:
    asked = ALL | {"tenant": "visoin"}
    async with served(ledger) as client, client.get(PAGE_PATH, params=asked) as answer:
        page = await answer.text()
    async with served(ledger) as client, client.get(REPORT_PATH, params=asked) as answer:
        document = await answer.json()

    assert "No record has tenant visoin: check the spelling." in page
    assert "Records of allocations exist from 1970-01-01 00:16:40 on" in page
    assert (document["unmatched"], document["records_from"]) == (["tenant visoin"], "1970-01-01T00:16:40Z")


async def test_a_restricted_user_cannot_find_out_which_names_others_have(ledger: Path) -> None:
    policy = AccessPolicy(tokens={digest("t"): "anna"}, tenants={"anna": frozenset({BLUE})})

    async with served(ledger, policy) as client:
        for column, theirs in (("tenant", RED), ("namespace", "other"), ("pod", "pod-a")):
            for name in (theirs, "visoin"):
                async with client.get(REPORT_PATH, params=ALL | {column: name}) as answer:
                    assert (await answer.json())["unmatched"] == [f"{column} {name}"]


@pytest.mark.parametrize("path", [REPORT_PATH, PREEMPTIONS_PATH, WAITS_PATH])
async def test_a_restricted_user_without_records_has_not_misspelt_its_own_tenants(ledger: Path, path: str) -> None:
    mine, other = "new[*]", "new-too"
    policy = AccessPolicy(tokens={digest("t"): "anna"}, tenants={"anna": frozenset({mine, other})})

    async def unmatched(**filters: str) -> list[str]:
        async with client.get(path, params=ALL | filters) as answer:
            document = await answer.json()
        assert document["rows"] == []
        return sorted(document["unmatched"])

    async with served(ledger, policy) as client:
        assert await unmatched() == []
        assert await unmatched(tenant=other) == []
        assert await unmatched(tenant="new*") == []
        assert await unmatched(tenant="visoin", namespace="ml") == ["namespace ml", "tenant visoin"]
        async with client.get(PAGE_PATH, params=ALL) as answer:
            assert "check the spelling" not in await answer.text()


async def test_the_page_has_unobserved_gpu_hours_if_there_are_some(ledger: Path) -> None:
    gap = Gap(from_us=us(3 * HOUR), to_us=us(4 * HOUR + 36))
    with SqliteLedger(ledger) as writer:
        writer.write(step(replace(PODS[1], end_us=us(3 * HOUR), gap=gap, revision=2), at=5 * HOUR, live=None))

    async with served(ledger) as client, client.get(PAGE_PATH, params=ALL) as answer:
        page = await answer.text()

    assert answer.status == 200, page
    assert '<th scope="col" class="number">unobserved GPU-hours</th>' in page
    assert page.count('<td class="number">1.01</td>') == 4  # a row and the total, by tenant and by day


async def test_the_page_marks_upper_bounds_of_lost_work_and_says_since_when_it_counts(ledger: Path) -> None:
    unknown = LostPod(PODS[0].uid, us(HOUR), us(2 * HOUR), CheckpointSource.START)
    with SqliteLedger(ledger) as writer:
        writer.write(step(at=5 * HOUR, live=None, lost_work={"v": replace(LOST_WORK, victim_uid="v", pods=(unknown,))}))

    async with served(ledger) as client, client.get(PAGE_PATH, params=ALL) as answer:
        page = await answer.text()

    assert answer.status == 200, page
    assert '<td class="number">&lt;1.00</td>' in page
    assert "<p>Lost work counts from the accounting start, 1970-01-01 00:16:40; &lt; marks upper bounds" in page


@pytest.mark.parametrize(
    ("limit", "value", "problem"),
    [
        ("OUTPUT_BYTES", 10, "the report is longer than 0 MiB"),
        ("TIMEOUT_SECONDS", 0.0, "the report took more than 0 s"),
        ("MEMORY_BYTES", 2**20, "the report"),
    ],
)
async def test_a_report_beyond_its_limits_ends_and_the_next_one_works(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: float, problem: str
) -> None:
    async with served(ledger) as client:
        with monkeypatch.context() as limited:
            limited.setattr(ledger_process, limit, value)
            async with client.get(REPORT_PATH, params=ALL) as answer:
                assert answer.status == 503
                assert (await answer.text()).startswith(problem)
        async with client.get(REPORT_PATH, params=ALL) as answer:
            assert answer.status == 200


async def test_a_missing_ledger_is_logged_and_no_path_is_shown(tmp_path: Path) -> None:
    async with served(tmp_path / "none.db") as client, client.get(REPORT_PATH) as answer:
        assert (answer.status, await answer.text()) == (503, "the report failed; see the log\n")


async def test_the_api_is_described(ledger: Path) -> None:
    async with served(ledger) as client, client.get(OPENAPI_PATH) as answer:
        described = json.loads(await answer.text())

    operation = described["paths"][REPORT_PATH]["get"]
    assert {each["name"] for each in operation["parameters"]} == set(parameter_names(Report))
    assert described["info"]["version"] == "1.2.3"
    assert {"Report", "AllocationsDocument", "PodAllocation"} <= described["components"]["schemas"].keys()


async def test_a_period_of_which_only_daily_sums_are_left_is_rejected_without_naming_the_file(ledger: Path) -> None:
    with SqliteLedger(ledger) as writer:
        writer.write(step(at=2 * DAY))
        assert [0, *writer.roll_up(US_PER_DAY)][-1] == len(PODS)
    async with (
        served(ledger) as client,
        client.get(REPORT_PATH, params=ALL | {"by": "hour"}) as answer,
        client.get(REPORT_PATH, params=ALL) as whole,
        client.get(PAGE_PATH, params=ALL) as page,
    ):
        assert "Unobserved GPU-hours are not known" in await page.text()
        assert answer.status == 400
        text = await answer.text()
        assert set(await rows(whole)) == {RED, BLUE, f"{BLUE}s"}
    assert "1970-01-01 01:00:00 UTC is inside a day before 1970-01-02, of which the retention left daily sums" in text
    assert ledger.name not in text


async def test_pods_that_are_not_accounted_are_noted_for_users_who_may_see_all(ledger: Path) -> None:
    claims = UnaccountedDay(day="1970-01-01", reason=Unaccounted.CLAIM, pods=2, quantity=0)
    with SqliteLedger(ledger) as live:
        live.write(step(at=5 * HOUR, documents={("unaccounted-day", "1970-01-01 claim"): claims}))
    restricted = AccessPolicy(tokens={digest("t"): "ann"}, tenants={"ann": frozenset({RED})})

    async with served(ledger) as client:
        async with client.get(REPORT_PATH, params=ALL) as answer:
            [noted] = (await answer.json())["unaccounted"]
        async with client.get(PAGE_PATH, params=ALL) as page:
            shown = await page.text()
    async with served(ledger, restricted) as client:
        async with client.get(REPORT_PATH, params=ALL) as answer:
            assert (await answer.json())["unaccounted"] is None
        async with client.get(PAGE_PATH, params=ALL) as page:
            assert "Not included" not in await page.text()

    assert (noted["reason"], noted["pods"], noted["gpus"]) == ("claim", 2, None)
    assert "<p>Not billed: up to 2 pods at a time, because " in shown

import asyncio
import gzip
import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import make_mocked_request

from gputally.errors import AddressTaken, ConfigError, LedgerUnwritable
from gputally.exposition.negotiation import PLAIN
from gputally.process.addresses import FLAG
from gputally.web.server import Readiness, Scrape, Site, _Metrics, serve

LOOPBACK = "127.0.0.1:0"


async def scrape(openmetrics: bool) -> bytes:  # noqa: FBT001  # the shape of Scrape
    return b"# EOF\n" if openmetrics else b"up 1.0\n"


async def large(openmetrics: bool) -> bytes:  # noqa: ARG001, FBT001  # the shape of Scrape
    return b"gputally_gpus 1.0\n" * 100_000


def site(
    *,
    scrape: Scrape = scrape,
    ready: Callable[[], Readiness] = Readiness,
    links: tuple[tuple[str, str], ...] = (),
    routes: tuple[web.AbstractRouteDef, ...] = (),
    max_requests: int = 40,
) -> Site:
    return Site(
        title="gputally aggregator",
        about="Counts GPU time.",
        version="1.2.3",
        scrapes={"/metrics": scrape},
        ready=ready,
        links=links,
        routes=routes,
        max_requests=max_requests,
    )


@asynccontextmanager
async def served(what: Site) -> AsyncIterator[ClientSession]:
    async with serve(what, addresses=[LOOPBACK]) as [address], ClientSession(f"http://{address}") as client:
        yield client


async def test_a_scrape_is_text_unless_asked_otherwise() -> None:
    async with served(site()) as client, client.get("/metrics") as answer:
        assert answer.status == 200
        assert answer.headers["Content-Type"] == PLAIN.content_type
        assert await answer.read() == b"up 1.0\n"


async def test_a_scrape_is_openmetrics_for_who_wants_it() -> None:
    accept = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}

    async with served(site()) as client, client.get("/metrics", headers=accept) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        assert await answer.read() == b"# EOF\n"


@pytest.mark.parametrize("source", [scrape, large])
async def test_a_scrape_is_compressed_for_who_can_read_it(source: Scrape) -> None:
    async with (
        serve(site(scrape=source), addresses=[LOOPBACK]) as [address],
        ClientSession(f"http://{address}", auto_decompress=False) as client,
        client.get("/metrics", headers={"Accept-Encoding": "gzip"}) as answer,
    ):
        assert answer.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(await answer.read()) == await source(False)  # noqa: FBT003 - the shape of Scrape


async def test_a_scrape_is_plain_for_who_cannot_read_gzip() -> None:
    accept = {"Accept-Encoding": "identity"}

    async with served(site()) as client, client.get("/metrics", headers=accept) as answer:
        assert "Content-Encoding" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/metrics", "/healthz", "/readyz"])
async def test_head_is_get_without_a_body(path: str) -> None:
    async with served(site()) as client, client.head(path) as answer:
        assert answer.status == 200
        assert await answer.read() == b""


@pytest.mark.parametrize(
    ("error", "logged"),
    [(LedgerUnwritable("disk full"), "scrape failed: disk full"), (ZeroDivisionError("a bug"), "scrape failed")],
)
async def test_a_failed_scrape_is_one_log_entry_and_the_next_one_works(
    error: Exception, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    outcomes = [error, None]

    async def failing_once(openmetrics: bool) -> bytes:  # noqa: FBT001  # the shape of Scrape
        if outcome := outcomes.pop(0):
            raise outcome
        return await scrape(openmetrics)

    async with served(site(scrape=failing_once)) as client:
        async with client.get("/metrics") as first:
            assert first.status == 500
            assert "disk full" not in await first.text()
        async with client.get("/metrics") as second:
            assert second.status == 200

    entries = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [entry.getMessage() for entry in entries] == [logged]


class Gate:
    """A scrape that waits until told, and counts its runs."""

    def __init__(self) -> None:
        self.runs = 0
        self.entered = asyncio.Event()
        self.open = asyncio.Event()

    async def scrape(self, openmetrics: bool) -> bytes:  # noqa: FBT001  # the shape of Scrape
        self.runs += 1
        self.entered.set()
        await self.open.wait()
        return await scrape(openmetrics)


async def status(client: ClientSession, path: str) -> int:
    async with client.get(path) as answer:
        await answer.read()
        return answer.status


async def test_scrapes_at_the_same_moment_share_one_rendering() -> None:
    gate = Gate()
    metrics = _Metrics(gate.scrape, max_requests=2)
    async with asyncio.TaskGroup() as tasks:
        answers = [tasks.create_task(metrics.get(make_mocked_request("GET", "/metrics"))) for _ in range(2)]
        await gate.entered.wait()
        gate.open.set()

    assert [answer.result().body for answer in answers] == [b"up 1.0\n"] * 2
    assert gate.runs == 1


async def test_who_hangs_up_leaves_the_others_their_answer() -> None:
    gate = Gate()
    metrics = _Metrics(gate.scrape, max_requests=2)
    async with asyncio.TaskGroup() as tasks:
        impatient, patient = (tasks.create_task(metrics.get(make_mocked_request("GET", "/metrics"))) for _ in range(2))
        await gate.entered.wait()
        impatient.cancel()
        gate.open.set()

    assert patient.result().status == 200


async def test_scrapes_beyond_the_limit_are_refused() -> None:
    gate = Gate()
    async with served(site(scrape=gate.scrape, max_requests=1)) as client, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(status(client, "/metrics"))
        await gate.entered.wait()

        assert await status(client, "/metrics") == 429
        assert await status(client, "/healthz") == 200

        gate.open.set()

    assert first.result() == 200
    assert gate.runs == 1


async def test_health_does_not_depend_on_readiness() -> None:
    unready = site(ready=lambda: Readiness(("ledger: not open",)))

    async with served(unready) as client, client.get("/healthz") as answer:
        assert (answer.status, await answer.text()) == (200, "ok\n")


async def test_ready_is_ok() -> None:
    async with served(site()) as client, client.get("/readyz") as answer:
        assert (answer.status, await answer.text()) == (200, "ok\n")


async def test_what_is_not_ready_is_listed_line_by_line() -> None:
    missing = ("pods: first listing under way", "lease: held by aggregator-1")

    async with served(site(ready=lambda: Readiness(missing))) as client, client.get("/readyz") as answer:
        assert answer.status == 503
        assert (await answer.text()).splitlines() == list(missing)


async def test_readiness_is_asked_at_each_request() -> None:
    states = [Readiness(("pods",)), Readiness()]

    async with served(site(ready=lambda: states.pop(0))) as client:
        assert await status(client, "/readyz") == 503
        assert await status(client, "/readyz") == 200


async def test_every_link_of_the_status_page_works() -> None:
    async def bill(_request: web.Request) -> web.Response:
        return web.Response(text="bill")

    extra = site(links=(("/api/v1/bill", "the bill"),), routes=(web.get("/api/v1/bill", bill),))
    async with served(extra) as client:
        async with client.get("/") as answer:
            assert answer.content_type == "text/html"
            targets = re.findall('href="(/[^"]*)"', await answer.text())
        statuses = [await status(client, target) for target in targets]

    assert targets == ["/metrics", "/healthz", "/readyz", "/api/v1/bill"]
    assert statuses == [200] * 4


async def test_the_status_page_may_load_nothing() -> None:
    async with served(site()) as client, client.get("/") as answer:
        policy = answer.headers["Content-Security-Policy"]

    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


@pytest.mark.parametrize("path", ["/", "/metrics", "/readyz", "/nowhere"])
async def test_no_answer_is_guessed_at_or_tells_the_software_below(path: str) -> None:
    async with served(site()) as client, client.get(path) as answer:
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Server"] == "gputally"


@pytest.mark.parametrize(("method", "path", "code"), [("GET", "/nowhere", 404), ("POST", "/metrics", 405)])
async def test_a_wrong_request_is_refused_in_plain_text(method: str, path: str, code: int) -> None:
    async with served(site()) as client, client.request(method, path) as answer:
        assert answer.status == code
        assert answer.content_type == "text/plain"


async def test_several_addresses_are_served_and_reported() -> None:
    async with serve(site(), addresses=[LOOPBACK, "localhost:0"]) as addresses, ClientSession() as client:
        for address in addresses:
            assert await status(client, f"http://{address}/healthz") == 200

    assert len(addresses) == 2


async def test_a_taken_address_is_an_error_of_its_own() -> None:
    async with serve(site(), addresses=[LOOPBACK]) as [taken]:
        with pytest.raises(AddressTaken, match=str(taken)):
            async with serve(site(), addresses=[str(taken)]):
                pass


async def test_a_bad_address_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match=FLAG):
        async with serve(site(), addresses=["nowhere"]):
            pass


async def test_an_address_is_free_again_after_serving() -> None:
    async with serve(site(), addresses=[LOOPBACK]) as [address]:
        pass

    async with serve(site(), addresses=[str(address)]) as [again]:
        assert again == address


async def test_stopping_does_not_wait_for_ever_for_a_stuck_scrape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gputally.web.server.GRACE_SECONDS", 0.05)
    gate = Gate()
    async with ClientSession() as client:
        async with serve(site(scrape=gate.scrape), addresses=[LOOPBACK]) as [address]:
            stuck = asyncio.create_task(status(client, f"http://{address}/metrics"))
            await gate.entered.wait()
        outcome = await asyncio.gather(stuck, return_exceptions=True)

    assert isinstance(outcome[0], BaseException)

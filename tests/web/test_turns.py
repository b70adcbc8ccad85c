"""One user with many connections: all others are still answered, over real sockets."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest
from aiohttp import ClientSession, TCPConnector, web
from msgspec import Struct
from msgspec.structs import replace

from gputally.questions.own import BudgetsNow
from gputally.web.access_policy import AccessPolicy, digest
from gputally.web.connections import MAX_CONNECTIONS
from gputally.web.filtered_routes import Filters, filtered_route
from gputally.web.ledger_process import LedgerProcess
from gputally.web.pending_routes import BODIES, PendingRoutes
from gputally.web.report_processes import ReportRunner
from gputally.web.report_routes import report_routes
from gputally.web.server import serve
from gputally.web.turns import WAITING, Turns
from tests.unit.answers.pending_world import Past
from tests.unit.web.test_pending_routes import state
from tests.unit.web.test_report_route import ledger
from tests.unit.web.test_server import Gate, site

__all__ = ["ledger"]
USERS = AccessPolicy(
    tokens={digest("anna"): "anna", digest("root"): "root"},
    tenants={"anna": frozenset({"ml"})},
)
CONNECTIONS = 20


class Now(Struct):
    """A document."""

    at: int


def document(now: Now, filters: Filters, *, tenants: Collection[str] | None) -> Now:
    return Now(now.at + len(filters) + len(tenants or ()))


@pytest.fixture
async def server(ledger: Path) -> AsyncIterator[str]:
    live = filtered_route("/api/v1/allocations", (), read=lambda: Now(1), document=document)
    async with ReportRunner(str(ledger)) as runner:
        routes = (live, *PendingRoutes(state, Past()).routes(), *report_routes(runner, version="1"))
        what = replace(site(routes=routes, max_requests=4), bodies=BODIES)
        async with serve(what, addresses=["127.0.0.1:0"], policy_source=lambda: USERS) as [address]:
            yield f"http://{address}"


@asynccontextmanager
async def user(server: str, name: str) -> AsyncIterator[ClientSession]:
    headers = {"Authorization": f"Bearer {name}"}
    async with ClientSession(server, headers=headers, connector=TCPConnector(limit=0)) as session:
        yield session


class Flood:
    """`CONNECTIONS` of a user that ask for ever; `rejected` is set once all their places are taken."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.retry_after: set[str | None] = set()
        self.rejected = asyncio.Event()

    async def ask(self, session: ClientSession, path: str, numbers: Iterator[int]) -> None:
        separator = "&" if "?" in path else "?"
        while True:
            async with session.get(f"{path}{separator}top={next(numbers)}" if "report" in path else path) as answer:
                await answer.read()
            self.statuses[answer.status] += 1
            if answer.status in (429, 503):
                self.retry_after.add(answer.headers.get("Retry-After"))
                self.rejected.set()


@asynccontextmanager
async def flooded(server: str, path: str) -> AsyncIterator[Flood]:
    found, numbers = Flood(), count(1)
    async with user(server, "anna") as session:
        asking = [asyncio.create_task(found.ask(session, path, numbers)) for _ in range(CONNECTIONS)]
        async with asyncio.timeout(30):
            await found.rejected.wait()
        try:
            yield found
        finally:
            for task in asking:
                task.cancel()
            results = await asyncio.gather(*asking, return_exceptions=True)
            assert all(isinstance(each, asyncio.CancelledError) for each in results)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/why?namespace=ml&pod=a",
        "/api/v1/pending?helps=true",
        "/api/v1/fits",
        "/api/v1/what-if?gpus=8&class=top",
        "/pending",
        "/pending/why?namespace=ml&pod=a",
        "/api/v1/report?window=all",
        "/api/v1/allocations",
    ],
)
async def test_many_connections_of_one_user_leave_the_others_their_answers(server: str, path: str) -> None:
    async with flooded(server, path) as flood, user(server, "root") as root:
        for asked in (path, path, "/api/v1/why?namespace=ml&pod=a", "/metrics"):
            async with root.get(asked) as answer:
                assert answer.status == 200, f"{asked}: {await answer.text()}"

    assert set(flood.statuses) <= {200, 429}
    assert flood.retry_after == {"2"}


async def test_of_more_clients_than_may_wait_each_is_answered_or_asked_to_try_again(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the aggregator's own evaluation is made, though it needs a turn of the same kind."""
    many, refused, go_on, runner = WAITING + 20, asyncio.Semaphore(0), asyncio.Event(), ReportRunner(str(ledger))

    async def answer(_process: LedgerProcess, question: Struct, _limits: object = None) -> bytes:
        await go_on.wait()
        is_own = isinstance(question, BudgetsNow)
        return b"evaluated" if is_own else b'{"rows": [], "cut_off": "2026-07-01T00:00:00Z"}'

    async def ask(number: int) -> tuple[int, str | None, str]:
        path = "/report" if number >= many - 10 else f"/api/v1/report?top={number + 1}"
        async with user(url, f"u{number}") as session, session.get(path) as answer:
            if answer.status != 200:
                refused.release()
            return answer.status, answer.headers.get("Retry-After"), answer.content_type

    monkeypatch.setattr(LedgerProcess, "answer", answer)
    policy = AccessPolicy(tokens={digest(f"u{number}"): f"u{number}" for number in range(many)})
    what = site(routes=report_routes(runner, version="1"))
    async with serve(what, addresses=["127.0.0.1:0"], policy_source=lambda: policy) as [address]:
        url = f"http://{address}"
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            first = [tasks.create_task(ask(number)) for number in range(many - 10)]
            for _ in range(9):
                await refused.acquire()
            pages = [tasks.create_task(ask(number)) for number in range(many - 10, many)]
            for _ in range(10):
                await refused.acquire()
            own = tasks.create_task(runner.budgets(BudgetsNow(configuration="", prices="")))
            await asyncio.sleep(0)
            go_on.set()

    assert own.result() == b"evaluated"
    answers = Counter(each.result() for each in first)
    assert answers == {(200, None, "application/json"): WAITING + 1, (503, "2", "text/plain"): 9}
    assert {each.result() for each in pages} == {(503, "2", "text/html")}


async def test_scrapes_of_one_user_leave_the_others_theirs() -> None:
    gate = Gate()
    what = site(scrape=gate.scrape, max_requests=4)
    async with serve(what, addresses=["127.0.0.1:0"], policy_source=lambda: USERS) as [address]:
        url = f"http://{address}"
        async with asyncio.TaskGroup() as tasks, flooded(url, "/metrics"), user(url, "root") as root:
            scrape = tasks.create_task(status(root, "/metrics"))
            assert await status(root, "/healthz") == 200
            gate.open.set()

            assert await scrape == 200


async def status(session: ClientSession, path: str) -> int:
    async with session.get(path) as answer:
        await answer.read()
        return answer.status


async def test_connections_that_are_busy_with_bodies_leave_the_others_theirs(server: str) -> None:
    _, _, port = server.rpartition(":")
    body = b"POST /api/v1/what-if HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer anna\r\nContent-Length: 5\r\n\r\n"
    connections = [await asyncio.open_connection("127.0.0.1", int(port)) for _ in range(300)]
    for _, writer in connections:
        writer.write(body)  # and the body never comes
    rejected = await asyncio.gather(*(first_line(reader) for reader, _ in connections[8:MAX_CONNECTIONS]))

    async with user(server, "root") as root, asyncio.timeout(5):
        async with root.post("/api/v1/what-if", json={"kind": "Pod", "metadata": {"name": "p"}, "spec": POD}) as answer:
            assert answer.status == 200, await answer.text()
        assert await status(root, "/api/v1/why?namespace=ml&pod=a") == 200
    assert set(rejected) <= {b"HTTP/1.1 429 Too Many Requests\r\n", b""}
    for _, writer in connections:
        writer.close()


POD = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}


async def first_line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readline()
    except ConnectionError:
        return b""


async def test_a_disconnected_clients_request_is_dropped() -> None:
    turns, entered = Turns(1, places=1), asyncio.Event()

    async def wait(_request: web.Request) -> web.Response:
        async with turns.turn():
            entered.set()
            await asyncio.Event().wait()
        raise AssertionError

    async with (
        serve(site(routes=(web.get("/wait", wait),)), addresses=["127.0.0.1:0"]) as [address],
        user(f"http://{address}", "anna") as session,
        asyncio.timeout(20),
    ):
        first = asyncio.create_task(status(session, "/wait"))
        await entered.wait()
        assert await status(session, "/wait") == 429
        first.cancel()
        entered.clear()
        while not entered.is_set():  # once the server has read of the disconnection
            again = asyncio.create_task(status(session, "/wait"))
            await asyncio.wait((again, asyncio.create_task(entered.wait())), return_when=asyncio.FIRST_COMPLETED)
        again.cancel()

"""Requests, their credentials and their errors, over real HTTP."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack

import pytest
from aiohttp.test_utils import unused_port

from gputally.errors import ApiForbidden, ApiUnreachable, ConfigError, Problem, VersionExpired
from gputally.kube.api import Access, Api, Batches, new_session
from gputally.kube.failures import Failure, RequestFailed, RequestRefused
from gputally.kube.reflector import Lines
from gputally.kube.server_time import Answer, monotonic_us
from gputally.model.kube.meta import OwnerMeta
from tests.fakes.scripted_api import ScriptedApi, serving


class Login:
    """Credentials that the test exchanges."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.token = "first"
        self.reread_token = "second"
        self.rereads = 0

    def access(self) -> Access:
        token = self.token
        return Access(
            server=self.server, login="team.kubeconfig", authorization=lambda: f"Bearer {max(token, self.token)}"
        )

    def reread(self) -> Access:
        self.rereads += 1
        self.token = self.reread_token
        return self.access()


@pytest.fixture
def login(server: ScriptedApi) -> Login:
    return Login(server.url)


@pytest.fixture
async def api(login: Login) -> AsyncIterator[Api]:
    async with new_session() as session:
        yield Api(session, login.access(), reread=login.reread)


def get(api: Api, path: str = "/api/v1/nodes") -> asyncio.Task[OwnerMeta]:
    """A request in the background, so that the test can answer it."""
    return asyncio.create_task(api.get_json(path, {"limit": "5"}, OwnerMeta, accept="application/json;as=X"))


async def test_a_document_is_asked_for_with_parameters_and_accept_and_decoded(server: ScriptedApi, api: Api) -> None:
    answer = get(api)
    request = await server.request()
    request.answer({"kind": "Job", "metadata": {"uid": "u"}})

    assert (await answer).metadata.uid == "u"
    assert request.query == {"limit": "5"}
    assert request.headers["Accept"] == "application/json;as=X"
    assert request.headers["User-Agent"].startswith("gputally/")


async def test_every_request_carries_the_token_of_its_moment(server: ScriptedApi, api: Api, login: Login) -> None:
    seen = []
    for token in ("first", "rotated"):
        login.token = token
        answer = get(api)
        request = await server.request()
        request.answer({"metadata": {}})
        await answer
        seen.append(request.headers["Authorization"])

    assert seen == ["Bearer first", "Bearer rotated"]


async def test_after_a_401_the_credentials_are_read_anew_and_the_request_repeated(
    server: ScriptedApi, api: Api
) -> None:
    answer = get(api)
    (await server.request()).refuse(401)
    again = await server.request()
    again.answer({"metadata": {"uid": "u"}})

    assert (await answer).metadata.uid == "u"
    assert again.headers["Authorization"] == "Bearer second"


async def test_requests_refused_together_read_the_credentials_once(server: ScriptedApi, api: Api, login: Login) -> None:
    answers = [get(api) for _ in range(3)]
    for refused in [await server.request() for _ in answers]:
        refused.refuse(401)
    for _ in answers:
        (await server.request()).answer({"metadata": {}})
    await asyncio.gather(*answers)

    assert login.rereads == 1


async def test_credentials_refused_twice_are_forbidden_and_the_message_says_where_they_come_from(
    server: ScriptedApi, api: Api
) -> None:
    answer = get(api)
    for _ in range(2):
        (await server.request()).refuse(401, "Unauthorized")

    with pytest.raises(ApiForbidden, match=r"renew the credentials in team\.kubeconfig"):
        await answer
    assert server.is_left_alone


async def test_credentials_that_cannot_be_read_anew_leave_the_server_unreachable(
    server: ScriptedApi, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Access:
        raise ConfigError([Problem("team.kubeconfig", "users[a]", "gone")])

    monkeypatch.setattr(api, "_reread", broken)
    answer = get(api)
    (await server.request()).refuse(401)

    with pytest.raises(ApiUnreachable, match=r"team.kubeconfig: users\[a\]: gone"):
        await answer


async def test_a_refusal_names_the_missing_rule(server: ScriptedApi, api: Api) -> None:
    answer = get(api)
    (await server.request()).refuse(403, 'nodes is forbidden: User "x" cannot list')

    with pytest.raises(ApiForbidden, match=r"cannot list; grant list,watch on nodes in API group ''"):
        await answer


@pytest.mark.parametrize(
    ("status", "error"), [(410, VersionExpired), (404, RequestRefused), (302, RequestRefused), (500, RequestFailed)]
)
async def test_a_status_becomes_its_error(server: ScriptedApi, api: Api, status: int, error: type[Exception]) -> None:
    answer = get(api)
    (await server.request()).answer(b"<html>a proxy speaks</html>", status, {"Location": "/elsewhere"})

    with pytest.raises(error, match="a proxy speaks"):
        await answer


async def test_a_throttled_request_tells_the_pause(server: ScriptedApi, api: Api) -> None:
    answer = get(api)
    (await server.request()).refuse(429, headers={"Retry-After": "4"})

    with pytest.raises(RequestFailed) as caught:
        await answer
    assert (caught.value.failure, caught.value.retry_after_seconds) == (Failure.THROTTLED, 4)


async def test_an_answer_of_another_shape_is_no_answer(server: ScriptedApi, api: Api) -> None:
    answer = get(api)
    (await server.request()).answer(["not", "an", "object"])

    with pytest.raises(ApiUnreachable, match="unexpected response"):
        await answer


async def test_a_server_that_is_not_there_is_unreachable_and_its_url_is_named() -> None:
    access = Access(server=f"http://127.0.0.1:{unused_port()}", login="x", authorization=lambda: "")
    async with new_session() as session:
        api = Api(session, access, reread=lambda: access)

        with pytest.raises(ApiUnreachable, match=f"{access.server}/api/v1/nodes: Cannot connect"):
            await get(api)


async def test_a_connection_that_breaks_in_the_middle_of_the_answer_is_unreachable(
    server: ScriptedApi, api: Api
) -> None:
    answer = get(api)
    request = await server.request()
    await request.send(b'{"metadata":')
    await request.abort()

    with pytest.raises(ApiUnreachable, match="/api/v1/nodes"):
        await answer


async def test_every_answer_is_told_with_its_date_and_when_it_was_asked_for_and_came(
    server: ScriptedApi, login: Login
) -> None:
    told: list[Answer] = []
    async with new_session() as session:
        api = Api(session, login.access(), reread=login.reread, on_answer=told.append)
        before_us = monotonic_us()
        answer = get(api)
        (await server.request()).answer({"metadata": {}}, headers={"Date": "Mon, 08 Jun 2026 12:00:00 GMT"})
        await answer
        between_us = monotonic_us()
        streaming = asyncio.create_task(first_lines(api))
        await (await server.request()).send(b"{}\n")
        await streaming

    [plain, streamed] = told
    assert plain[0] == "Mon, 08 Jun 2026 12:00:00 GMT"
    assert before_us <= plain[1] < plain[2] <= between_us <= streamed[1] < streamed[2]
    assert streamed[0].endswith(" GMT")


async def test_an_answer_asked_for_apart_comes_on_a_connection_of_its_own(server: ScriptedApi, login: Login) -> None:
    told: list[Answer] = []
    async with new_session() as session:
        api = Api(session, login.access(), reread=login.reread, on_answer=told.append)
        ports = []
        for asking in (
            api.get_json("/a", {}, OwnerMeta),
            api.request_on_new_connection("/b", {"limit": "5"}),
            api.request_on_new_connection("/b", {}),
        ):
            answer = asyncio.create_task(asking)
            request = await server.request()
            ports.append(request.port)
            request.answer({"metadata": {}})
            await answer

    assert len(set(ports)) == 3
    assert [each.on_new_connection for each in told] == [False, True, True]


async def first_lines(api: Api) -> Sequence[bytes | memoryview]:
    async with api.stream("/api/v1/pods", {}, split=Lines().feed, idle_seconds=10) as batches:
        return await anext(batches)


async def test_bytes_that_came_before_they_were_asked_for_need_no_wait_wherever_they_lie(
    server: ScriptedApi, api: Api
) -> None:
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        opening = tasks.create_task(stack_of(api))
        request = await server.request()
        await request.send(b"{}\n")
        stack, batches = await opening
        async with stack:
            await anext(batches)
            waits = [batches.waited_seconds]
            sending = tasks.create_task(request.send(b"x" * 5_000_000))  # more than is read ahead
            await asyncio.sleep(0.05)
            for _ in range(3):
                await anext(batches)
                waits.append(batches.waited_seconds)
        sending.cancel()

    assert waits[0] > 0
    assert waits[1:] == [0, 0, 0]


async def stack_of(api: Api) -> tuple[AsyncExitStack, Batches]:
    """An open stream, and what closes it."""
    async with AsyncExitStack() as stack:
        batches = await stack.enter_async_context(api.stream("/api/v1/pods", {}, split=Lines().feed, idle_seconds=10))
        return stack.pop_all(), batches
    raise AssertionError


async def test_the_date_of_a_refusal_is_not_told_for_it_may_be_that_of_a_proxy(
    server: ScriptedApi, login: Login
) -> None:
    told: list[Answer] = []
    async with new_session() as session:
        api = Api(session, login.access(), reread=login.reread, on_answer=told.append)
        answer = get(api)
        (await server.request()).refuse(502)
        with pytest.raises(RequestFailed):
            await answer

    assert told == []


async def test_requests_go_through_the_configured_proxy() -> None:
    async with serving() as proxy, new_session() as session:
        access = Access(server="http://nowhere.invalid", login="x", authorization=lambda: "", proxy=proxy.url)
        answer = get(Api(session, access, reread=lambda: access))
        request = await proxy.request()
        request.answer({"metadata": {"uid": "u"}})

        assert (await answer).metadata.uid == "u"
        assert request.headers["Host"] == "nowhere.invalid"

"""What reaches the server is what was asked for, and of what it answers no more is read, and no longer, than wanted."""

import asyncio
from contextlib import suppress

import pytest

from gputally.kube.api import Access, Api, new_session
from gputally.kube.failures import AnswerTooLarge, Failure, RequestFailed, RequestRefused
from gputally.model.kube.meta import OwnerMeta
from tests.fakes.scripted_api import ScriptedApi


def get(api: Api, path: str = "/api/v1/nodes") -> asyncio.Task[OwnerMeta]:
    """A request in the background, so that the test can answer it."""
    return asyncio.create_task(api.get_json(path, {"limit": "5"}, OwnerMeta))


@pytest.mark.parametrize(
    "path", ["/api/v1/nodes/%2E%2E", "/api/v1/x%2Fy", "/api/v1/a%3Fb%23c", "/api/v1/%C3%A9%20", "/api/v1/a%25b"]
)
async def test_a_path_reaches_the_server_as_it_is_written(server: ScriptedApi, api: Api, path: str) -> None:
    answer = get(api, path)
    request = await server.request()
    request.answer({"metadata": {}})
    await answer

    assert request.target == f"{path}?limit=5"


async def test_a_server_behind_a_path_of_its_own_is_asked_below_it(server: ScriptedApi) -> None:
    access = Access(server=f"{server.url}/k8s/clusters/c%2F1/", login="x", authorization=lambda: "")
    async with new_session() as session:
        answer = get(Api(session, access, reread=lambda: access))
        request = await server.request()
        request.answer({"metadata": {}})
        await answer

    assert request.target == "/k8s/clusters/c%2F1/api/v1/nodes?limit=5"


async def test_no_more_of_an_answer_is_read_than_is_wanted(server: ScriptedApi, api: Api) -> None:
    sizes = []
    for size in (1000, 1001):
        body = b'{"metadata":{"uid":"u"}}'.ljust(size)
        answer = asyncio.create_task(api.get_json("/api/v1/nodes", {}, OwnerMeta, most_bytes=1000))
        (await server.request()).answer(body)
        sizes.append(await asyncio.gather(answer, return_exceptions=True))

    [[whole], [too_large]] = sizes
    assert isinstance(whole, OwnerMeta)
    assert isinstance(too_large, AnswerTooLarge)


async def test_an_answer_without_end_is_cut_off(server: ScriptedApi, api: Api) -> None:
    answer = asyncio.create_task(api.get_json("/api/v1/nodes", {}, OwnerMeta, most_bytes=1 << 20))
    request = await server.request()
    sent = 0
    with suppress(ConnectionError):
        while not answer.done():
            await request.send(b" " * (1 << 16))
            sent += 1 << 16

    with pytest.raises(AnswerTooLarge, match="larger than 1024 KiB"):
        await answer
    assert sent < 16 << 20, "it was read on"


async def test_an_answer_that_comes_a_byte_at_a_time_has_a_deadline(server: ScriptedApi, api: Api) -> None:
    answer = asyncio.create_task(api.get_json("/api/v1/nodes", {}, OwnerMeta, deadline_s=0.3))
    request = await server.request()
    while not answer.done():
        await request.send(b" ")
        await asyncio.sleep(0.02)

    with pytest.raises(RequestFailed, match=r"no complete response within 0\.3 s") as raised:
        await answer
    assert raised.value.failure is Failure.SERVER


async def test_of_a_long_refusal_the_beginning_is_told(server: ScriptedApi, api: Api) -> None:
    answer = get(api)
    (await server.request()).refuse(400, "x" * 60_000)
    with pytest.raises(RequestRefused) as raised:
        await answer
    assert 500 <= len(str(raised.value)) < 700

    answer = get(api)
    (await server.request()).answer(b"y" * 5_000_000, 502)
    with pytest.raises(RequestFailed, match="502: yyy") as failed:
        await answer
    assert len(str(failed.value)) < 700

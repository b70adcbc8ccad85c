"""How many connections there may be, and which of them has to go."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tests.fakes.policies import PAGE, SiteClient, policies


@pytest.fixture
async def opened() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


async def connect(door: SiteClient, opened: AsyncExitStack, source: str = "127.0.0.1") -> asyncio.StreamReader:
    reader, writer = await asyncio.open_connection(door.host, door.port, local_addr=(source, 0))
    opened.callback(writer.close)
    return reader


async def is_open(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(0.1):
            await reader.read()
    except TimeoutError:
        return True
    except ConnectionError:
        pass
    return False


async def test_beyond_the_limit_the_one_that_has_waited_longest_goes(
    monkeypatch: pytest.MonkeyPatch, opened: AsyncExitStack
) -> None:
    monkeypatch.setattr("gputally.web.connections.MAX_CONNECTIONS", 3)
    async with policies() as door:
        readers = [await connect(door, opened) for _ in range(5)]

        assert [await is_open(reader) for reader in readers] == [False, False, True, True, True]


async def test_who_has_many_connections_displaces_none_of_an_address_with_fewer(
    monkeypatch: pytest.MonkeyPatch, opened: AsyncExitStack
) -> None:
    monkeypatch.setattr("gputally.web.connections.MAX_CONNECTIONS", 3)
    async with policies() as door:
        first = await connect(door, opened, "127.0.0.2")
        others = [await connect(door, opened) for _ in range(10)]

        assert await is_open(first)
        assert [await is_open(each) for each in others] == [False] * 8 + [True] * 2


async def test_a_scrape_under_way_is_never_the_one_that_goes(
    monkeypatch: pytest.MonkeyPatch, opened: AsyncExitStack
) -> None:
    monkeypatch.setattr("gputally.web.connections.MAX_CONNECTIONS", 3)
    entered, ready = asyncio.Event(), asyncio.Event()

    async def slow(_openmetrics: bool) -> bytes:  # noqa: FBT001 - the shape of Scrape
        entered.set()
        await ready.wait()
        return PAGE

    async with policies(scrape=slow) as door:
        scraping = asyncio.create_task(door.get())
        await entered.wait()
        for _ in range(10):
            await connect(door, opened)
        ready.set()

        assert (await scraping).status == 200


async def test_a_process_without_room_for_one_more_connection_accepts_it_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gputally.web.connections._PAUSE_SECONDS", 0.1)
    async with policies() as door:
        with monkeypatch.context() as full:
            full.setattr("socket.socket.accept", no_room)
            asking = asyncio.create_task(door.get())
            await asyncio.sleep(0.3)
            assert not asking.done()

        assert (await asking).status == 200
    assert "cannot accept connections: Too many open files" in caplog.text


def no_room(_listener: object) -> None:
    raise OSError(24, "Too many open files")

"""What goes wrong between us and the server is counted, said once, and outlived."""

import logging

import msgspec
import pytest

from gputally.model.observation import Checkpoint, RelistFinished, RelistStarted, Unavailable, Upserted
from tests.fakes.objects import bookmark, failure, listing, modified
from tests.fakes.scripted_api import ScriptedApi
from tests.unit.kube.conftest import PODS, Watcher

RESUME = Checkpoint(version="7", at_us=500)


async def test_a_connection_broken_in_mid_line_resumes_after_the_last_whole_one(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start(resume=RESUME)
    request = await server.request()
    await request.send(modified("a", 8), modified("b", 9)[:40])
    await watcher.next()
    await request.abort()

    again = await server.request()
    await again.send(modified("b", 9))

    assert again.query["resourceVersion"] == "8"
    assert isinstance(await watcher.next(), Upserted)
    assert watcher.health.errors == {"unreachable": 1}
    assert len(watcher.pauses) == 1


async def test_a_stream_without_a_byte_is_dropped_as_idle_and_resumed(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start(msgspec.structs.replace(PODS, idle_seconds=0.05), RESUME)
    await (await server.request()).send(bookmark(8))

    again = await server.request()

    assert again.query["resourceVersion"] == "8"
    assert watcher.health.errors == {"idle": 1}


async def test_a_server_that_was_set_back_is_listed_anew(server: ScriptedApi, watcher: Watcher) -> None:
    """After etcd was restored from a backup, a watch from a version to come brings nothing until it has come."""
    server.newest = "5"
    watcher.start(resume=RESUME)

    assert "watch" not in (await server.request()).query
    assert watcher.health.expired == 1


async def test_a_server_that_was_set_back_under_a_broken_watch_is_listed_anew(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start(resume=RESUME)
    request = await server.request()
    await request.send(modified("a", 8))
    server.newest = "7"
    await request.abort()

    assert "watch" not in (await server.request()).query


async def test_versions_that_are_no_numbers_are_not_compared(server: ScriptedApi, watcher: Watcher) -> None:
    server.newest = "a"
    watcher.start(resume=RESUME)

    assert (await server.request()).query["resourceVersion"] == "7"


async def test_health_says_whether_the_watch_is_connected(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start(resume=RESUME)
    request = await server.request()
    await request.send()
    await watcher.until(lambda: watcher.health.connected)
    await request.abort()

    await watcher.until(lambda: not watcher.health.connected)


async def test_a_watch_that_resumes_in_quiet_has_heard_of_the_server(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start(resume=RESUME)
    await (await server.request()).send()
    await watcher.until(lambda: watcher.health.connected)

    assert watcher.health.last_activity_us == 60_000_000


async def test_a_throttled_watch_waits_at_least_as_long_as_it_is_told(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start(resume=RESUME)
    (await server.request()).refuse(429, headers={"Retry-After": "17"})
    await server.request()

    assert 17 <= watcher.pauses[0] <= 18
    assert watcher.health.errors == {"throttled": 1}


async def test_the_pause_told_inside_a_stream_counts_as_well(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start(resume=RESUME)
    await (await server.request()).send(failure(500, "InternalError", details={"retryAfterSeconds": 9}))
    await server.request()

    assert watcher.pauses[0] >= 9
    assert watcher.health.errors == {"server": 1}


async def test_progress_makes_the_next_pause_short_again(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start(resume=RESUME)
    for _ in range(8):
        (await server.request()).refuse(503)
    request = await server.request()
    await request.send(modified("a", 8))
    await request.abort()
    await server.request()

    assert max(watcher.pauses[:-1]) > 8
    assert watcher.pauses[-1] <= 1


async def test_a_forbidden_watch_names_the_missing_rule_once_and_recovers_when_it_is_granted(
    server: ScriptedApi, watcher: Watcher, caplog: pytest.LogCaptureFixture
) -> None:
    watcher.start(resume=RESUME)
    for _ in range(3):
        (await server.request()).refuse(403, "pods is forbidden")
    await (await server.request()).send(modified("a", 8))

    assert isinstance(await watcher.next(), Upserted)
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "grant list,watch on pods in API group ''" in warnings[0]
    assert watcher.health.errors == {"forbidden": 3}


@pytest.mark.parametrize("status", [403, 404])
async def test_of_a_resource_that_can_be_done_without_it_is_told_that_nothing_is_known_until_it_can_be_listed(
    status: int, server: ScriptedApi, watcher: Watcher, caplog: pytest.LogCaptureFixture
) -> None:
    watcher.health.available = True
    watcher.start(msgspec.structs.replace(PODS, without="nobody knows"))
    for _ in range(2):
        (await server.request()).refuse(status, "no")
    told = await watcher.take(2)
    assert [(type(each), each.at_us) for each in told] == [(Unavailable, watcher.clock())] * 2
    assert (watcher.health.available, watcher.health.initialized) == (False, True)

    (await server.request()).answer(listing())
    assert [type(each) for each in await watcher.take(2)] == [RelistStarted, RelistFinished]
    assert (watcher.health.available, watcher.health.initialized) == (True, True)
    [warning] = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warning.endswith("; until then nobody knows")


@pytest.mark.parametrize("refused", [401, 403, 404, 500])
async def test_of_a_required_resource_a_listing_is_awaited(refused: int, server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start()
    (await server.request()).refuse(refused, "no")
    (await server.request()).answer(listing())

    assert [type(each) for each in await watcher.take(2)] == [RelistStarted, RelistFinished]
    assert watcher.health.available is None


async def test_a_server_in_trouble_does_not_count_as_one_without_the_resource(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.health.available = True
    watcher.start(msgspec.structs.replace(PODS, without="nobody knows"))
    (await server.request()).refuse(500, "no")
    (await server.request()).answer(listing())

    assert [type(each) for each in await watcher.take(2)] == [RelistStarted, RelistFinished]


async def test_a_trouble_that_comes_back_after_progress_is_said_again(
    server: ScriptedApi, watcher: Watcher, caplog: pytest.LogCaptureFixture
) -> None:
    watcher.start(resume=RESUME)
    (await server.request()).refuse(403, "no")
    request = await server.request()
    await request.send(modified("a", 8))
    await request.close()
    (await server.request()).refuse(403, "no")
    await server.request()

    assert len([r for r in caplog.records if r.levelno == logging.WARNING]) == 2


async def test_what_cannot_be_read_is_said_once_per_reason(
    server: ScriptedApi, watcher: Watcher, caplog: pytest.LogCaptureFixture
) -> None:
    watcher.start(resume=RESUME)
    await (await server.request()).send(b"{\n", b"{\n", b"[]\n", modified("a", 8))
    await watcher.next()

    assert len([r for r in caplog.records if "skipped" in r.getMessage()]) == 2
    assert watcher.health.malformed == 3


async def test_a_resource_that_does_not_exist_yet_is_waited_for(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start()
    for _ in range(2):
        (await server.request()).refuse(404)
    again = await server.request()

    assert again.query == {}
    assert watcher.health.errors == {"refused": 2}
    assert len(watcher.pauses) == 2


async def test_a_listing_without_a_version_is_an_error_and_not_a_hot_loop(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start()
    (await server.request()).answer(listing(version=""))
    await server.request()

    assert watcher.health.errors == {"server": 1}
    assert len(watcher.pauses) == 1

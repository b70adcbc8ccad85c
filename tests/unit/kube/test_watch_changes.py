"""Following changes: resuming, bookmarks, objects passed over, since_us."""

import asyncio

import msgspec

from gputally.kube.api import Api
from gputally.kube.failures import Backoff
from gputally.kube.reflector import LIVE_US, QUIET_SECONDS, run_reflector
from gputally.model.health import WatchHealth
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Bookmark, Checkpoint, Deleted, Upserted
from tests.fakes.objects import added, bookmark, deleted, modified
from tests.fakes.scripted_api import ScriptedApi
from tests.unit.kube.conftest import PODS, Clock, Watcher

SECOND = 1_000_000
RESUME = Checkpoint(version="7", at_us=10 * SECOND)
RESUME_SINCE_US = 9_500_000
"""The earliest moment of what comes in a backlog: half a second before RESUME."""


async def test_a_watch_with_a_stored_version_starts_there_without_listing(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start(resume=RESUME)

    request = await server.request()
    await request.send(modified("a", 8))

    assert request.query["resourceVersion"] == "7"
    assert request.query["watch"] == "true"
    assert isinstance(await watcher.next(), Upserted)
    assert watcher.health.listings == 0


async def test_a_watch_asks_for_bookmarks_and_ends_after_five_to_ten_minutes(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start(msgspec.structs.replace(PODS, field_selector="spec.nodeName=n"), RESUME)

    query = (await server.request()).query

    assert query["watch"] == query["allowWatchBookmarks"] == "true"
    assert query["fieldSelector"] == "spec.nodeName=n"
    assert 300 <= int(query["timeoutSeconds"]) <= 600


async def test_a_bookmark_moves_the_version_the_watch_resumes_from(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start(resume=RESUME)
    request = await server.request()

    await request.send(bookmark(90))
    progress = await watcher.next()
    await request.close()

    assert isinstance(progress, Bookmark)
    assert progress.version == "90"
    assert (await server.request()).query["resourceVersion"] == "90"
    assert watcher.health.bookmarks == 1


async def test_a_response_the_server_ends_is_no_error_and_is_followed_at_once(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start(resume=RESUME)
    request = await server.request()
    await request.send(modified("a", 8))
    await request.close()

    await (await server.request()).send()
    await watcher.until(lambda: watcher.health.reconnects)

    assert watcher.pauses == []
    assert watcher.health.errors == {}


async def test_responses_that_end_without_a_word_are_not_asked_for_in_a_hot_loop(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start(resume=RESUME)
    for _ in range(3):
        await (await server.request()).close()
    await server.request()

    assert len(watcher.pauses) == 3


async def test_a_deleted_object_is_gone_in_its_last_form(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start(resume=RESUME)

    await (await server.request()).send(deleted("a", 9))

    gone = await watcher.next()
    assert isinstance(gone, Deleted)
    assert gone.object.metadata.resource_version == "9"


async def test_objects_passed_over_become_one_progress_a_chunk(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start(resume=RESUME)

    request = await server.request()
    await request.send(modified("web-1", 8), modified("web-2", 9), modified("web-3", 10))
    first = await watcher.next()
    await request.send(modified("web-1", 11), modified("a", 12))
    second = await watcher.next()

    assert isinstance(first, Bookmark)
    assert first.version == "10"
    assert isinstance(second, Upserted)
    assert watcher.health.events == 5


async def test_progress_in_a_backlog_is_as_old_as_a_change_there(
    server: ScriptedApi, watcher: Watcher, clock: Clock
) -> None:
    watcher.start(resume=RESUME)
    request = await server.request()
    await request.send(modified("web-1", 8))
    behind = await watcher.next()
    await request.send(bookmark(9))
    live = await watcher.next()

    assert behind == Bookmark(kind=Kind.PODS, version="8", at_us=clock.now, since_us=RESUME_SINCE_US)
    assert live == Bookmark(kind=Kind.PODS, version="9", at_us=clock.now, since_us=clock.now)


async def test_an_object_passed_over_is_told_when_it_is_deleted(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start(resume=RESUME)

    await (await server.request()).send(deleted("web-1", 8))

    assert isinstance(await watcher.next(), Deleted)


async def test_an_object_of_three_megabytes_and_one_with_a_cut_character_come_whole(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start(resume=RESUME)
    request = await server.request()
    odd = modified("b", 9, labels={"owner": "Zoë"}).replace(b"\\u00eb", "ë".encode())
    cut = odd.index("ë".encode()) + 1

    await request.send(modified("a", 8, annotations={"huge": "x" * 3_000_000}), odd[:cut])
    big = await watcher.next()
    await request.send(odd[cut:])
    cut_apart = await watcher.next()

    assert isinstance(big, Upserted)
    assert isinstance(cut_apart, Upserted)
    assert cut_apart.object.metadata.labels == {"owner": "Zoë"}


async def test_fields_and_event_types_of_tomorrow_are_passed_over(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start(resume=RESUME)

    await (await server.request()).send(modified("a", 8, novelty={"deep": [1, {"er": None}]}))

    assert isinstance(await watcher.next(), Upserted)
    assert watcher.health.malformed == 0


async def test_what_cannot_be_read_is_counted_and_the_watch_goes_on_from_the_next_good_object(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start(resume=RESUME)
    request = await server.request()

    await request.send(
        b"{not json\n",
        b'{"type": "ADDED", "object": {"metadata": {"name": 5}}}\n',
        added("b", 8, uid=""),
        added("c", 9, resourceVersion=""),
        added("d", 10),
    )
    seen = await watcher.next()
    await request.abort()

    assert isinstance(seen, Upserted)
    assert seen.object.metadata.name == "d"
    assert watcher.health.malformed == 4
    assert (await server.request()).query["resourceVersion"] == "10"


async def test_on_a_live_stream_a_change_happens_when_it_is_seen(
    server: ScriptedApi, watcher: Watcher, clock: Clock
) -> None:
    watcher.start(resume=RESUME)
    request = await server.request()
    await request.send(bookmark(8))
    await watcher.next()

    clock.now += 1
    await request.send(modified("a", 9))

    seen = await watcher.next()
    assert isinstance(seen, Upserted)
    assert (seen.since_us, seen.at_us) == (clock.now, clock.now)


async def test_until_a_pause_shows_that_no_backlog_is_sent_a_change_is_as_old_as_the_stored_watch(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start(resume=RESUME)
    request = await server.request()
    await request.send(modified("a", 8))
    first = await watcher.next()
    await asyncio.sleep(QUIET_SECONDS)
    await request.send(modified("a", 9))
    second = await watcher.next()

    assert isinstance(first, Upserted)
    assert isinstance(second, Upserted)
    assert first.since_us == RESUME_SINCE_US
    assert second.since_us == second.at_us


async def test_what_lay_unread_while_the_reader_was_held_back_is_as_old_as_that(
    server: ScriptedApi, api: Api, clock: Clock
) -> None:
    health, backoff = WatchHealth(kind=Kind.PODS), Backoff()
    reflector = run_reflector(api, PODS, health=health, clock=clock, backoff=backoff, resume=RESUME)
    first = asyncio.create_task(anext(reflector))
    request = await server.request()
    await request.send(bookmark(8))
    await first
    held_us = clock.now
    await request.send(deleted("a", 9))
    await asyncio.sleep(0.01)
    clock.now += 60 * SECOND

    [gone] = await anext(reflector)
    assert isinstance(gone, Deleted)
    assert (gone.since_us, gone.at_us) == (held_us - LIVE_US, clock.now)
    await reflector.aclose()


async def test_after_a_broken_connection_a_change_is_as_old_as_the_last_byte(
    server: ScriptedApi, watcher: Watcher, clock: Clock
) -> None:
    watcher.start(resume=RESUME)
    request = await server.request()
    await request.send(bookmark(8))
    await watcher.next()
    clock.now += 6 * SECOND
    last_us = clock.now
    await request.send(bookmark(9))
    await watcher.next()

    clock.now += 60 * SECOND
    await request.abort()
    await (await server.request()).send(deleted("a", 10))

    gone = await watcher.next()
    assert isinstance(gone, Deleted)
    assert (gone.since_us, gone.at_us) == (last_us - LIVE_US, clock.now)


async def test_after_a_response_that_the_server_ended_a_change_is_as_old_as_that_end(
    server: ScriptedApi, watcher: Watcher, clock: Clock
) -> None:
    watcher.start(resume=RESUME)
    request = await server.request()
    await request.send(bookmark(8))
    await watcher.next()

    clock.now += 60 * SECOND
    await asyncio.sleep(QUIET_SECONDS)
    await request.close()
    again = await server.request()
    ended_us = clock.now
    clock.now += 2 * SECOND
    await again.send(deleted("a", 10))

    gone = await watcher.next()
    assert isinstance(gone, Deleted)
    assert (gone.since_us, gone.at_us) == (ended_us - LIVE_US, clock.now)


async def test_in_a_backlog_a_change_is_not_older_than_a_new_object_before_it(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start(resume=RESUME)
    await (await server.request()).send(
        added("web-1", 8, creationTimestamp="1970-01-01T00:00:40Z"),
        modified("web-2", 9, creationTimestamp="1970-01-01T00:00:50Z"),
        deleted("a", 10),
    )

    gone = await watcher.next()
    assert isinstance(gone, Deleted)
    assert gone.since_us == 40 * SECOND - LIVE_US

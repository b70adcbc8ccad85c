"""Listing: streamed by servers that can, by pages from the others."""

from gputally.model.observation import Gone, Listed, Listing, Observation, Resume, Seen
from tests.fakes.objects import added, bookmark, deleted, failure, page, pod
from tests.fakes.scripted_api import ScriptedApi
from tests.unit.sources.conftest import Clock, Watcher


def names(observations: list[Observation]) -> list[str]:
    """What was told, in short."""
    return [o.object.metadata.name if isinstance(o, Seen | Gone) else type(o).__name__ for o in observations]


async def test_a_first_start_lists_by_stream_and_goes_on_in_the_same_response(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start()
    request = await server.request()

    await request.send(added("a", 3), added("web-1", 1), added("b", 2), bookmark(9, ends_listing=True), added("c", 10))

    told = await watcher.take(5)
    assert request.query["sendInitialEvents"] == "true"
    assert request.query["resourceVersionMatch"] == "NotOlderThan"
    assert "resourceVersion" not in request.query
    assert names(told) == ["Listing", "a", "b", "Listed", "c"]
    assert told[3] == Listed(kind=watcher.health.kind, version="9", at_us=60_000_000, since_us=None)
    assert watcher.health.synced


async def test_objects_come_before_their_listing_is_complete(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start()
    request = await server.request()
    await request.send(added("a", 3))

    assert names(await watcher.take(2)) == ["Listing", "a"]
    assert not watcher.health.synced


async def test_a_streamed_listing_that_breaks_starts_anew(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start()
    broken = await server.request()
    await broken.send(added("a", 3), b'{"type": "ADD')
    await watcher.take(2)
    await broken.abort()
    again = await server.request()
    await again.send(added("b", 4), bookmark(9, ends_listing=True))

    assert "sendInitialEvents" in again.query
    assert names(await watcher.take(3)) == ["Listing", "b", "Listed"]
    assert len(watcher.pauses) == 1


async def test_listings_that_break_again_and_again_are_tried_less_and_less_often(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start()
    for _ in range(12):
        request = await server.request()
        await request.send(added("a", 3))
        await watcher.take(2)
        await request.abort()
    await server.request()

    assert max(watcher.pauses) > 8


async def test_a_server_that_cannot_stream_a_listing_is_asked_for_pages(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start()
    (await server.request()).refuse(422, "sendInitialEvents is forbidden for watch")
    first = await server.request()
    first.answer(page(pod("a"), pod("web-1"), token="more", version=40))
    second = await server.request()
    second.answer(page(pod("b"), version=40))
    watch = await server.request()
    await watch.send(added("c", 41))

    assert names(await watcher.take(5)) == ["Listing", "a", "b", "Listed", "c"]
    assert first.query == {"limit": "500"}
    assert second.query == {"limit": "500", "continue": "more"}
    assert watch.query["resourceVersion"] == "40"
    assert watcher.pauses == []
    assert watcher.health.errors == {}


async def test_a_server_that_refused_to_stream_is_not_asked_again(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start()
    (await server.request()).refuse(400)
    (await server.request()).answer(page(version=40))
    (await server.request()).refuse(410)

    assert "watch" not in (await server.request()).query


async def test_an_expired_page_token_starts_the_listing_anew(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start()
    (await server.request()).refuse(400)
    (await server.request()).answer(page(pod("a"), token="old", version=40))
    (await server.request()).refuse(410)
    (await server.request()).answer(page(pod("b"), version=50))

    assert names(await watcher.take(5)) == ["Listing", "a", "Listing", "b", "Listed"]


async def test_an_unreadable_item_spoils_nothing_else_of_its_page(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start()
    (await server.request()).refuse(400)
    (await server.request()).answer(page({"metadata": {"name": 5}}, pod("b", uid=""), pod("c"), version=40))

    assert names(await watcher.take(3)) == ["Listing", "c", "Listed"]
    assert watcher.health.malformed == 2


async def test_a_version_refused_with_status_410_is_followed_by_a_listing(
    server: ScriptedApi, watcher: Watcher, clock: Clock
) -> None:
    watcher.start(resume=Resume(version="7", at_us=500))
    (await server.request()).refuse(410, reason="Expired")
    await (await server.request()).send(added("a", 3), bookmark(9, ends_listing=True))

    told = await watcher.take(3)
    assert names(told) == ["Listing", "a", "Listed"]
    assert told[1:] == [
        Seen(kind=watcher.health.kind, object=told[1].object, at_us=clock.now, since_us=500),  # type: ignore[union-attr]  # names said so
        Listed(kind=watcher.health.kind, version="9", at_us=clock.now, since_us=500),
    ]
    assert watcher.health.expired == 1


async def test_an_error_event_410_inside_a_watch_is_followed_by_a_listing(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start(resume=Resume(version="7", at_us=500))
    await (await server.request()).send(failure(410, "Expired"))
    again = await server.request()
    await again.send()

    assert "sendInitialEvents" in again.query
    assert names([await watcher.next()]) == ["Listing"]
    assert watcher.health.expired == 1


async def test_a_version_ahead_of_a_restored_server_is_followed_by_a_listing(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start(resume=Resume(version="7000", at_us=500))
    (await server.request()).refuse(504, details={"causes": [{"reason": "ResourceVersionTooLarge"}]})

    assert "sendInitialEvents" in (await server.request()).query


async def test_what_goes_between_a_listing_by_pages_and_its_watch_is_as_old_as_the_listing(
    server: ScriptedApi, watcher: Watcher, clock: Clock
) -> None:
    watcher.start()
    (await server.request()).refuse(400)
    request = await server.request()
    clock.now += 2_000_000
    request.answer(page(pod("a"), version=40))
    watch = await server.request()
    clock.now += 3_000_000
    await watch.send(deleted("a", 41))

    gone = (await watcher.take(4))[-1]
    assert isinstance(gone, Gone)
    assert (gone.since_us, gone.at_us) == (60_000_000, 65_000_000)


async def test_a_slow_listing_is_not_taken_for_a_live_stream(
    server: ScriptedApi, watcher: Watcher, clock: Clock
) -> None:
    watcher.start(resume=Resume(version="7", at_us=500))
    (await server.request()).refuse(410)
    request = await server.request()
    await request.send(added("a", 3))
    await watcher.take(2)
    clock.now += 60_000_000
    await request.send(added("b", 4), bookmark(9, ends_listing=True))

    seen, listed = await watcher.take(2)
    assert isinstance(seen, Seen)
    assert isinstance(listed, Listed)
    assert seen.since_us == listed.since_us == 500


async def test_listings_begin_only_when_the_server_answers(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start()
    for _ in range(3):
        (await server.request()).refuse(503)
    await (await server.request()).send(bookmark(9, ends_listing=True))

    told = await watcher.take(2)
    assert [type(o) for o in told] == [Listing, Listed]
    assert watcher.health.listings == 1

"""Listing: all that is there, item by item as it comes."""

import pytest

from gputally.errors import VersionExpired
from gputally.kube.failures import Backoff
from gputally.kube.reflector import ANSWER_SECONDS, Reflector
from gputally.model.health import WatchHealth
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Checkpoint, Deleted, Observation, RelistFinished, RelistStarted, Upserted
from tests.fakes.objects import added, deleted, failure, listing, pod
from tests.fakes.scripted_api import ScriptedApi
from tests.unit.kube.conftest import PODS, Clock, Watcher


def names(observations: list[Observation]) -> list[str]:
    """What was told, in short."""
    return [o.object.metadata.name if isinstance(o, Upserted | Deleted) else type(o).__name__ for o in observations]


async def test_a_first_start_lists_all_there_is_and_watches_from_there(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start()
    request = await server.request()
    request.answer(listing(pod("a", 3), pod("web-1", 1), pod("b", 2), version=9))
    watch = await server.request()
    await watch.send(added("c", 10))

    told = await watcher.take(5)
    assert request.query == {}
    assert watch.query["resourceVersion"] == "9"
    assert names(told) == ["RelistStarted", "a", "b", "RelistFinished", "c"]
    assert told[3] == RelistFinished(
        kind=watcher.health.kind, version="9", at_us=60_000_000, since_us=None, as_of_us=60_000_000
    )
    assert watcher.pauses == []
    assert watcher.health.synced


async def test_objects_come_before_their_listing_is_complete(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start()
    request = await server.request()
    await request.send(listing(pod("a"), pod("b"), pod("c"))[:-20])

    assert names(await watcher.take(3)) == ["RelistStarted", "a", "b"]
    assert not watcher.health.synced


async def test_a_listing_that_breaks_starts_anew(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start()
    broken = await server.request()
    await broken.send(listing(pod("a"), pod("b"))[:-20])
    await watcher.take(2)
    await broken.abort()
    (await server.request()).answer(listing(pod("b", 4), version=9))

    assert names(await watcher.take(3)) == ["RelistStarted", "b", "RelistFinished"]
    assert len(watcher.pauses) == 1


@pytest.mark.parametrize("cut", [b"]}", b'"a"', b"PodList"])
async def test_a_listing_that_ends_too_early_is_no_listing(server: ScriptedApi, watcher: Watcher, cut: bytes) -> None:
    watcher.start()
    (await server.request()).answer(listing(pod("a"), pod("b")).partition(cut)[0])
    await server.request()

    assert watcher.health.errors == {"server": 1}
    assert watcher.health.listings == 0


async def test_listings_that_break_again_and_again_are_tried_less_and_less_often(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start()
    for _ in range(12):
        request = await server.request()
        await request.send(listing(pod("a"), pod("b"))[:-20])
        await watcher.take(2)
        await request.abort()
    await server.request()

    assert max(watcher.pauses) > 8


async def test_an_unreadable_item_spoils_nothing_else(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start()
    (await server.request()).answer(listing({"metadata": {"name": 5}}, pod("b", uid=""), pod("c"), version=40))

    assert names(await watcher.take(3)) == ["RelistStarted", "c", "RelistFinished"]
    assert watcher.health.malformed == 2


async def test_a_version_refused_with_status_410_is_followed_by_a_listing(
    server: ScriptedApi, watcher: Watcher, clock: Clock
) -> None:
    watcher.start(resume=Checkpoint(version="7", at_us=10_000_000))
    (await server.request()).refuse(410, reason="Expired")
    (await server.request()).answer(listing(pod("a", 3), version=9))

    told = await watcher.take(3)
    assert names(told) == ["RelistStarted", "a", "RelistFinished"]
    assert told[1:] == [
        Upserted(kind=watcher.health.kind, object=told[1].object, at_us=clock.now, since_us=9_500_000),  # type: ignore[union-attr]  # names said so
        RelistFinished(kind=watcher.health.kind, version="9", at_us=clock.now, since_us=9_500_000, as_of_us=clock.now),
    ]
    assert watcher.health.expired == 1


async def test_an_error_event_410_inside_a_watch_is_followed_by_a_listing(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start(resume=Checkpoint(version="7", at_us=10_000_000))
    await (await server.request()).send(failure(410, "Expired"))
    again = await server.request()
    await again.send()

    assert again.query == {}
    assert names([await watcher.next()]) == ["RelistStarted"]
    assert watcher.health.expired == 1


@pytest.mark.parametrize("before", [[], [b"{"]], ids=["in one chunk", "after a line that cannot be read"])
def test_an_error_event_after_a_quiet_wait_does_not_show_that_all_was_sent(clock: Clock, before: list[bytes]) -> None:
    resume = Checkpoint(version="7", at_us=10_000_000)
    reflector = Reflector(PODS, WatchHealth(kind=Kind.PODS), clock=clock, backoff=Backoff(), resume=resume)
    reflector.connected()
    with pytest.raises(VersionExpired):
        list(reflector.read([*before, failure(410, "Expired")], waited_seconds=ANSWER_SECONDS))

    assert reflector.listed("9").since_us == 9_500_000


def test_a_line_in_two_chunks_was_waited_for_as_long_as_the_first_of_them(clock: Clock) -> None:
    reflector = Reflector(
        PODS,
        WatchHealth(kind=Kind.PODS),
        clock=clock,
        backoff=Backoff(),
        resume=Checkpoint(version="7", at_us=10_000_000),
    )
    reflector.connected()

    assert list(reflector.read([], waited_seconds=ANSWER_SECONDS)) == []
    [seen] = reflector.read([added("a", 8)], waited_seconds=0)
    assert isinstance(seen, Upserted)
    assert seen.since_us == seen.at_us


async def test_a_version_ahead_of_a_restored_server_is_followed_by_a_listing(
    server: ScriptedApi, watcher: Watcher
) -> None:
    watcher.start(resume=Checkpoint(version="7000", at_us=10_000_000))
    (await server.request()).refuse(504, details={"causes": [{"reason": "ResourceVersionTooLarge"}]})

    assert (await server.request()).query == {}


async def test_what_goes_between_a_listing_and_its_watch_is_as_old_as_the_listing(
    server: ScriptedApi, watcher: Watcher, clock: Clock
) -> None:
    watcher.start()
    request = await server.request()
    clock.now += 2_000_000
    request.answer(listing(pod("a"), version=40))
    watch = await server.request()
    clock.now += 3_000_000
    await watch.send(deleted("a", 41))

    *_, listed, gone = await watcher.take(4)
    assert isinstance(listed, RelistFinished)
    assert (listed.as_of_us, listed.at_us) == (60_000_000, 62_000_000)
    assert isinstance(gone, Deleted)
    assert (gone.since_us, gone.at_us) == (59_500_000, 65_000_000)


async def test_a_slow_listing_is_not_taken_for_a_live_stream(
    server: ScriptedApi, watcher: Watcher, clock: Clock
) -> None:
    watcher.start(resume=Checkpoint(version="7", at_us=10_000_000))
    (await server.request()).refuse(410)
    request = await server.request()
    document = listing(pod("a"), pod("b"), version=9)
    await request.send(document[:-20])
    await watcher.take(2)
    clock.now += 60_000_000
    await request.send(document[-20:])
    await request.close()

    seen, listed = await watcher.take(2)
    assert isinstance(seen, Upserted)
    assert isinstance(listed, RelistFinished)
    assert seen.since_us == listed.since_us == 9_500_000


async def test_listings_begin_only_when_the_server_answers(server: ScriptedApi, watcher: Watcher) -> None:
    watcher.start()
    for _ in range(3):
        (await server.request()).refuse(503)
    (await server.request()).answer(listing(version=9))

    told = await watcher.take(2)
    assert [type(o) for o in told] == [RelistStarted, RelistFinished]
    assert watcher.health.listings == 1

"""What waits to be accounted: in order, and not without end."""

import asyncio

from gputally.aggregator.intake import Intake
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Bookmark, Observation, RelistFinished, Unavailable


def batch(first: int, size: int = 1) -> list[Observation]:
    return [Bookmark(kind=Kind.PODS, version=str(number), at_us=0, since_us=0) for number in range(first, first + size)]


async def test_batches_come_out_in_the_order_they_came_and_whole() -> None:
    intake = Intake()
    await intake.put(batch(1, 3))
    await intake.put(batch(4))

    assert intake.size == 4
    assert [await intake.get(), await intake.get()] == [batch(1, 3), batch(4)]
    assert intake.size == 0


async def test_whoever_puts_is_held_back_until_less_than_the_limit_waits() -> None:
    intake = Intake(limit=4)
    await intake.put(batch(1, 3))
    await intake.put(batch(4, 3))
    late = asyncio.create_task(intake.put(batch(7)))
    for _ in range(3):
        await asyncio.sleep(0)
    held = (late.done(), intake.size)
    await intake.get()
    await late

    assert held == (False, 6)
    assert [await intake.get(), await intake.get()] == [batch(4, 3), batch(7)]


async def test_only_watched_kinds_have_a_list_to_wait_for() -> None:
    assert Intake(kinds=[Kind.PODS]).listed.keys() == {Kind.PODS}


async def test_whoever_takes_waits_for_a_batch() -> None:
    intake = Intake()
    taker = asyncio.create_task(intake.get())
    await asyncio.sleep(0)
    await intake.put(batch(1))

    assert await taker == batch(1)


async def test_what_is_classified_by_others_waits_until_these_are_listed_and_then_all_is_one_queue() -> None:
    intake = Intake([Kind.NODES, Kind.EVENTS])
    await intake.put(batch(1), Kind.PODS)
    await intake.put(batch(2), Kind.NODES)
    await intake.put(batch(3))  # what was asked for
    releasing = asyncio.create_task(intake.release())

    assert [await intake.get(), await intake.get(), intake.size] == [batch(2), batch(3), 1]
    intake.accounted([listed(Kind.NODES)])
    waiting = asyncio.create_task(intake.get())
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    intake.accounted([Unavailable(kind=Kind.EVENTS, at_us=0)])
    await releasing
    await intake.put(batch(4), Kind.PODS)
    await intake.put(batch(5), Kind.NODES)

    assert [await waiting, await intake.get(), await intake.get(), intake.size] == [batch(1), batch(4), batch(5), 0]


async def test_who_was_held_back_before_the_release_goes_on_after_it() -> None:
    intake = Intake([Kind.NODES], limit=2)
    await intake.put(batch(1, 2), Kind.PODS)
    late = asyncio.create_task(intake.put(batch(3), Kind.PODS))
    await intake.put(batch(4), Kind.NODES)  # pods that wait take no room from what they wait for
    releasing = asyncio.create_task(intake.release())
    await asyncio.sleep(0)
    assert await intake.get() == batch(4)

    intake.accounted([listed(Kind.NODES)])
    await releasing

    assert await intake.get() == batch(1, 2)
    await late
    assert await intake.get() == batch(3)


async def test_a_listing_is_known_once_it_is_accounted() -> None:
    intake = Intake()
    intake.accounted([*batch(1), listed(Kind.NODES)])

    assert {kind for kind, event in intake.listed.items() if event.is_set()} == {Kind.NODES}


def listed(kind: Kind) -> RelistFinished:
    return RelistFinished(kind=kind, version="1", at_us=0, since_us=None, as_of_us=0)


async def test_whoever_waits_for_the_accounting_has_one_batch_in_the_queue() -> None:
    intake, added = Intake(), list[int]()

    async def feed() -> None:
        for number in range(3):
            await intake.put_and_wait(batch(number), Kind.JOBS)
            added.append(number)

    feeding = asyncio.create_task(feed())
    for _ in range(5):
        await asyncio.sleep(0)
    held = (intake.size, list(added))
    for _ in range(3):
        intake.accounted(await intake.get())
        await asyncio.sleep(0)
    await feeding

    assert held == (1, [])
    assert added == [0, 1, 2]

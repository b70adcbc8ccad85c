"""What waits to be accounted: in order, and not without end."""

import asyncio

from gputally.aggregator.backlog import Backlog
from gputally.model.kube import Kind
from gputally.model.observation import Observation, Progress


def batch(first: int, size: int = 1) -> list[Observation]:
    return [Progress(kind=Kind.PODS, version=str(number), at_us=0, since_us=0) for number in range(first, first + size)]


async def test_batches_come_out_in_the_order_they_came_and_whole() -> None:
    backlog = Backlog()
    await backlog.put(batch(1, 3))
    await backlog.put(batch(4))

    assert backlog.size == 4
    assert [await backlog.get(), await backlog.get()] == [batch(1, 3), batch(4)]
    assert backlog.size == 0


async def test_whoever_puts_is_held_back_until_less_than_the_limit_waits() -> None:
    backlog = Backlog(limit=4)
    await backlog.put(batch(1, 3))
    await backlog.put(batch(4, 3))
    late = asyncio.create_task(backlog.put(batch(7)))
    for _ in range(3):
        await asyncio.sleep(0)
    held = (late.done(), backlog.is_full, backlog.size)
    await backlog.get()
    await late

    assert held == (False, True, 6)
    assert [await backlog.get(), await backlog.get()] == [batch(4, 3), batch(7)]


async def test_whoever_takes_waits_for_a_batch() -> None:
    backlog = Backlog()
    taker = asyncio.create_task(backlog.get())
    await asyncio.sleep(0)
    await backlog.put(batch(1))

    assert await taker == batch(1)

import asyncio
import threading

import pytest

from gputally.devices.nvml.gpu_worker import CallThread, Hung
from gputally.devices.nvml.gpus import Retry
from tests.fakes.until import PATIENCE_SECONDS, until


async def test_calls_are_made_one_after_the_other_in_one_thread() -> None:
    lane = CallThread("nvml test")

    threads = {await lane.run(threading.get_ident, PATIENCE_SECONDS) for _ in range(3)}

    assert len(threads) == 1
    assert threads != {threading.get_ident()}
    lane.close()


async def test_what_a_call_raises_comes_back() -> None:
    lane = CallThread("nvml test")

    with pytest.raises(ZeroDivisionError):
        await lane.run(lambda: 1 // 0, PATIENCE_SECONDS)

    assert await lane.run(lambda: 7, PATIENCE_SECONDS) == 7
    lane.close()


async def test_after_a_call_that_hangs_none_is_begun_until_it_comes_back() -> None:
    lane, gate = CallThread("nvml test"), threading.Event()
    begun: list[int] = []

    with pytest.raises(Hung):
        await lane.run(gate.wait, 0.01)
    with pytest.raises(Hung):
        await lane.run(lambda: begun.append(1), PATIENCE_SECONDS)
    assert lane.is_busy
    gate.set()
    await until(lambda: not lane.is_busy)

    assert await lane.run(lambda: 7, PATIENCE_SECONDS) == 7
    assert begun == []
    lane.close()


async def test_a_call_whose_caller_was_cancelled_still_holds_the_thread() -> None:
    lane, gate = CallThread("nvml test"), threading.Event()
    waiting = asyncio.create_task(lane.run(gate.wait, PATIENCE_SECONDS))
    await until(lambda: lane.is_busy)
    await asyncio.sleep(0.01)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert lane.is_busy
    gate.set()
    lane.close()


def test_pauses_double_and_end_when_it_goes_well() -> None:
    now = 0.0
    retry = Retry(lambda: now, 4)
    assert not retry.take()

    tried = []
    retry.want()
    for second in range(1, 21):
        now = float(second)
        if retry.take():
            tried.append(second)
            retry.want()
    assert tried == [1, 3, 7, 11, 15, 19]
    assert retry.is_longest


def test_after_it_went_well_the_next_pause_is_a_short_one() -> None:
    now = 0.0
    retry = Retry(lambda: now, 4)
    retry.want()
    now = 1.0
    assert retry.take()

    retry.reset()
    retry.want()
    now = 2.0

    assert retry.take()

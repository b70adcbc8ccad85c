import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from gputally.devices.nvml.gpu_reader import ReadOptions
from gputally.devices.nvml.gpu_worker import Trouble, TroubleReason
from gputally.devices.nvml.gpus import Gpus, Timeouts
from gputally.devices.nvml.library import Versions
from gputally.errors import DriverChanged, DriverMissing, NvmlUnavailable
from gputally.model.devices import Reading
from tests.fakes.until import PATIENCE_SECONDS, until
from tests.nvml.script import Fault, Gpu, Hang, Xid
from tests.unit.devices.nvml.conftest import Node, now_us
from tests.unit.devices.nvml.readers import counting

A, B = Gpu(uuid="GPU-a", curve=[(-99, 50)]), Gpu(uuid="GPU-b", curve=[(-99, 20)])
HUNG = replace(A, faults=[Hang(function="nvmlDeviceGetMemoryInfo")])
HABITS = ReadOptions(pod_of=lambda _pid: None, clock=now_us)


class Clock:
    """Of the pauses between tries."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@asynccontextmanager
async def opened(node: Node, clock: Clock, *, read: float = PATIENCE_SECONDS) -> AsyncIterator[Gpus]:
    patience = Timeouts(read=read, start=PATIENCE_SECONDS)
    async with await Gpus.open(HABITS, patience=patience, nvml=node.nvml, clock=clock) as gpus:
        yield gpus


async def outcome(gpus: Gpus) -> dict[str, TroubleReason | None]:
    """By UUID what is wrong with it."""
    return {
        each.uuid if isinstance(each, Trouble) else each.gpu.uuid: each.reason if isinstance(each, Trouble) else None
        for each in await gpus.read_all(now_us())
    }


async def test_all_gpus_are_read(node: Node, clock: Clock) -> None:
    node.play(A, B, driver="580.1", nvml="13.580.1")

    async with opened(node, clock) as gpus:
        readings = await gpus.read_all(now_us())

    assert gpus.driver == Versions(driver="580.1", nvml="13.580.1")
    assert [(each.gpu.uuid, each.gpu.index) for each in readings if isinstance(each, Reading)] == [
        ("GPU-a", 0),
        ("GPU-b", 1),
    ]


async def test_a_node_without_gpus_has_no_driver_to_speak_of(node: Node) -> None:
    with pytest.raises(DriverMissing, match="shows no GPU; run on a node with an NVIDIA driver"):
        await Gpus.open(HABITS, nvml=node.nvml)


async def test_a_driver_that_does_not_start_is_missing(node: Node) -> None:
    node.play(A, init_error=9)

    with pytest.raises(DriverMissing):
        await Gpus.open(HABITS, nvml=node.nvml)


async def test_a_start_that_hangs_is_given_up(node: Node) -> None:
    node.play(A, faults=[Hang(function="nvmlInitWithFlags")])

    with pytest.raises(NvmlUnavailable, match=r"does not respond within 0.05 s"):
        await Gpus.open(HABITS, patience=Timeouts(read=0.05, start=0.05), nvml=node.nvml)

    node.play(A)


async def test_a_lost_gpu_is_missed_alone_and_found_again(node: Node, clock: Clock) -> None:
    node.play(A, B)

    async with opened(node, clock) as gpus:
        node.play(replace(A, lost=-1), B)
        lost = [await outcome(gpus), await outcome(gpus)]
        clock.seconds += 1
        lost.append(await outcome(gpus))
        node.play(A, B)
        clock.seconds += 2
        found = await outcome(gpus)

    assert lost == [{"GPU-a": TroubleReason.LOST, "GPU-b": None}] * 3
    assert found == {"GPU-a": None, "GPU-b": None}


async def test_for_a_gpu_that_stays_lost_nvml_is_initialised_anew_in_the_end(node: Node, clock: Clock) -> None:
    node.play(A, B)

    with counting(node.nvml, nvmlInit=1) as begun:
        async with opened(node, clock) as gpus:
            node.play(replace(A, lost=-1), B)
            while begun.total < 2:
                assert await outcome(gpus) == {"GPU-a": TroubleReason.LOST, "GPU-b": None}
                clock.seconds += 10

    assert clock.seconds > 300


async def test_a_gpu_that_was_lost_from_the_start_is_named_once_it_is_found(node: Node, clock: Clock) -> None:
    node.play(replace(A, lost=-1), B)

    async with opened(node, clock) as gpus:
        assert await outcome(gpus) == {"": TroubleReason.LOST, "GPU-b": None}
        node.play(A, B)
        clock.seconds += 1
        assert await outcome(gpus) == {"GPU-a": None, "GPU-b": None}


async def test_a_call_that_hangs_is_fenced_and_the_others_keep_their_cadence(
    node: Node, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    node.play(A, B)

    async with opened(node, clock, read=0.5) as gpus:
        node.play(HUNG, B)
        with caplog.at_level(logging.WARNING):
            assert await outcome(gpus) == {"GPU-a": TroubleReason.HUNG, "GPU-b": None}
            began = time.monotonic()
            for _ in range(3):
                assert await outcome(gpus) == {"GPU-a": TroubleReason.HUNG, "GPU-b": None}
            assert time.monotonic() - began < 1  # and not three times 0.5
        assert gpus.hangs() == {"GPU-a": 1}
        node.play(A, B)

        async def answers() -> bool:
            return await outcome(gpus) == {"GPU-a": None, "GPU-b": None}

        while not await answers():
            pass

    assert [record.getMessage() for record in caplog.records if record.name.startswith("gputally.")] == [
        "GPU GPU-a cannot be read: hung: the driver does not respond"
    ]


async def test_a_gpu_that_hangs_at_the_end_does_not_keep_the_process(node: Node, clock: Clock) -> None:
    node.play(A, B)
    began = time.monotonic()

    async with opened(node, clock, read=0.1) as gpus:
        node.play(HUNG, B)
        await gpus.read_all(now_us())

    assert time.monotonic() - began < 3
    node.play(A, B)


async def test_what_was_sampled_while_a_gpu_hung_is_told_later(node: Node, clock: Clock) -> None:
    node.play(A)

    async with opened(node, clock, read=0.1) as gpus:
        await gpus.read_all(began_us := now_us())
        node.play(replace(A, faults=[Hang(function="nvmlDeviceGetProcessUtilization")]))  # samples come first
        await until_sampled(began_us)
        await gpus.read_all(now_us())
        node.play(A)
        while isinstance((reading := (await gpus.read_all(now_us()))[0]), Trouble):
            pass

    (whole,) = reading.parts
    assert whole.busy[0].from_us < began_us + 300_000


async def until_sampled(since_us: int) -> None:
    """The driver looks six times a second."""
    await until(lambda: now_us() > since_us + 400_000)


async def test_a_gpu_that_fails_does_not_keep_the_others_from_being_read(node: Node, clock: Clock) -> None:
    node.play(A, B)

    async with opened(node, clock) as gpus:
        node.play(replace(A, faults=[Fault(function="nvmlDeviceGetMemoryInfo", code=999)]), B)
        assert await outcome(gpus) == {"GPU-a": TroubleReason.FAILED, "GPU-b": None}
        clock.seconds += 1
        assert await outcome(gpus) == {"GPU-a": TroubleReason.FAILED, "GPU-b": None}
        node.play(A, B)
        clock.seconds += 2
        assert await outcome(gpus) == {"GPU-a": None, "GPU-b": None}


async def test_nvml_that_forgot_us_is_initialised_anew(node: Node, clock: Clock) -> None:
    node.play(A, B)

    async with opened(node, clock) as gpus:
        node.play(A, B, uninitialised=node.now())
        forgotten = await outcome(gpus)
        clock.seconds += 1
        remembered = await outcome(gpus)

    assert forgotten == {"GPU-a": TroubleReason.FAILED, "GPU-b": TroubleReason.FAILED}
    assert remembered == {"GPU-a": None, "GPU-b": None}


async def test_what_was_sampled_before_nvml_was_initialised_anew_is_told(node: Node, clock: Clock) -> None:
    node.play(A)

    async with opened(node, clock) as gpus:
        began_us = now_us()
        node.play(A, uninitialised=node.now())
        await until_sampled(began_us)
        await gpus.read_all(now_us())
        clock.seconds += 1
        (reading,) = await gpus.read_all(now_us())

    assert isinstance(reading, Reading)
    assert reading.parts[0].busy[0].from_us <= began_us


async def test_while_nvml_cannot_be_initialised_nothing_is_told(node: Node, clock: Clock) -> None:
    node.play(A)

    async with opened(node, clock) as gpus:
        node.play(A, uninitialised=node.now(), init_error=999)
        for _ in range(4):
            assert await outcome(gpus) == {"GPU-a": TroubleReason.FAILED}
            clock.seconds += 1
        node.play(A)
        clock.seconds += 4
        assert await outcome(gpus) == {"GPU-a": None}


async def test_a_driver_that_was_replaced_ends_it(node: Node, clock: Clock) -> None:
    node.play(A, B)

    async with opened(node, clock) as gpus:
        node.play(A, B, mismatch=-1)
        with pytest.raises(DriverChanged):
            await gpus.read_all(now_us())


async def test_xids_are_counted_before_and_after_nvml_was_initialised_anew(node: Node, clock: Clock) -> None:
    node.play(A)

    async with opened(node, clock) as gpus:
        await until(lambda: gpus._xids.wait_until_applied(0))
        node.play(replace(A, xids=[first := Xid(at=node.now(), code=31)]))
        await until(gpus.xids)
        node.play(replace(A, xids=[first]), uninitialised=node.now())
        await gpus.read_all(now_us())
        clock.seconds += 1
        await gpus.read_all(now_us())
        await until(lambda: gpus._xids.wait_until_applied(0))
        node.play(replace(A, xids=[first, Xid(at=node.now(), code=31)]))
        await until(lambda: gpus.xids()["GPU-a", 31][0] == 2)

    assert gpus.xids()["GPU-a", 31][1] <= now_us()

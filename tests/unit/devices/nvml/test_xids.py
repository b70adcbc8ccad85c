from collections.abc import Iterator

import pytest

from gputally.devices.nvml.library import Nvml
from gputally.devices.nvml.xids import XidWatch
from tests.fakes.until import PATIENCE_SECONDS
from tests.nvml.script import Fault, Gpu, Xid
from tests.unit.devices.nvml.conftest import Node
from tests.unit.devices.nvml.readers import counting, until

A, B = Gpu(uuid="GPU-a"), Gpu(uuid="GPU-b")


@pytest.fixture
def watch(node: Node, nvml: Nvml) -> Iterator[XidWatch]:
    node.play(A, B)
    watch = XidWatch(nvml, lambda: 4711)
    yield watch
    watch.close()
    assert watch.wait_until_applied(PATIENCE_SECONDS)


def listen(watch: XidWatch, nvml: Nvml, *uuids: str) -> None:
    watch.watch({uuid: nvml.demand(nvml.calls.nvmlDeviceGetHandleByUUID, uuid) for uuid in uuids})
    assert watch.wait_until_applied(PATIENCE_SECONDS)


def xids(node: Node, *codes: int) -> list[Xid]:
    """At this moment, one after the other."""
    return [Xid(at=node.now() + step / 10**6, code=code) for step, code in enumerate(codes)]


def gpu(uuid: str, *happened: Xid, lost: float | None = None, faults: tuple[Fault, ...] = ()) -> Gpu:
    return Gpu(uuid=uuid, xids=happened, lost=lost, faults=faults)


def test_xids_are_counted_once_each(node: Node, nvml: Nvml, watch: XidWatch) -> None:
    listen(watch, nvml, "GPU-a", "GPU-b")

    node.play(gpu("GPU-a", *xids(node, 31, 31, 45)), gpu("GPU-b", *xids(node, 31)))
    until(lambda: sum(times for times, _ in watch.counts().values()) == 4)

    assert watch.counts() == {("GPU-a", 31): (2, 4711), ("GPU-a", 45): (1, 4711), ("GPU-b", 31): (1, 4711)}


def test_who_is_watched_may_change_and_counts_go_on(node: Node, nvml: Nvml, watch: XidWatch) -> None:
    listen(watch, nvml, "GPU-a")
    first = xids(node, 31)
    node.play(gpu("GPU-a", *first), B)
    until(lambda: bool(watch.counts()))
    listen(watch, nvml, "GPU-a", "GPU-b")

    node.play(gpu("GPU-a", *first, *xids(node, 31)), gpu("GPU-b", *xids(node, 79)))
    until(lambda: len(watch.counts()) == 2)
    until(lambda: watch.counts()[("GPU-a", 31)] == (2, 4711))


def test_after_a_gpu_is_lost_those_of_the_others_are_counted(node: Node, nvml: Nvml, watch: XidWatch) -> None:
    with counting(nvml, nvmlEventSetFree=1) as freed, counting(nvml, nvmlEventSetWait=1) as waited:
        listen(watch, nvml, "GPU-a", "GPU-b")
        last = xids(node, 79)
        node.play(gpu("GPU-a", *last, lost=node.now()), B)
        until(lambda: freed.total == 1)
        before = waited.total
        until(lambda: waited.total > before)  # with a set that is without the lost GPU
    node.play(gpu("GPU-a", *last, lost=-1), gpu("GPU-b", *xids(node, 31)))
    until(lambda: ("GPU-b", 31) in watch.counts())

    assert watch.counts()[("GPU-a", 79)] == (1, 4711)


@pytest.mark.parametrize("code", [3, 999])
def test_a_gpu_that_cannot_be_registered_does_without(node: Node, nvml: Nvml, watch: XidWatch, code: int) -> None:
    refused = (Fault(function="nvmlDeviceRegisterEvents", code=code),)
    node.play(gpu("GPU-a", faults=refused), B)
    listen(watch, nvml, "GPU-a", "GPU-b")

    node.play(gpu("GPU-a", faults=refused), gpu("GPU-b", *xids(node, 31)))
    until(lambda: bool(watch.counts()))

    assert watch.counts() == {("GPU-b", 31): (1, 4711)}


def test_sets_of_events_are_freed(node: Node, nvml: Nvml, watch: XidWatch) -> None:
    node.play(gpu("GPU-a", faults=(Fault(function="nvmlDeviceRegisterEvents", code=999),)), B)

    with counting(nvml, nvmlEventSetCreate=1, nvmlEventSetFree=-1) as made:
        listen(watch, nvml, "GPU-a", "GPU-b")
        assert made.total == 1
        listen(watch, nvml)

    assert made.calls == [1, -1, 1, -1]

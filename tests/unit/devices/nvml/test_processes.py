from dataclasses import replace

import pytest

from gputally.devices.nvml.gpu_reader import GpuReader
from gputally.devices.nvml.library import Nvml
from gputally.model.devices import Process as Found
from tests.nvml.script import Fault, Gpu, Process
from tests.unit.devices.nvml.conftest import Node
from tests.unit.devices.nvml.readers import look, part, reading, until

GPU = Gpu(uuid="GPU-a")
BUSY = Process(pid=1, memory_mib=5, curve=[(-99, 20)])


def sampled(reader: GpuReader) -> tuple[Found, ...]:
    """Processes with their use. The newest sample may be younger than a reading, and is then left for the next one."""
    found: tuple[Found, ...] = ()

    def has_samples() -> bool:
        nonlocal found
        found = part(reader).processes or ()
        return any(each.busy is not None for each in found)

    until(has_samples)
    return found


def test_processes_tell_their_memory_and_how_busy_they_kept_the_gpu(node: Node, nvml: Nvml) -> None:
    node.play(replace(GPU, processes=[BUSY, Process(pid=2, memory_mib=None)]))

    with reading(nvml, seconds_ago=10) as reader:
        seen = sampled(reader)

    assert seen[0].pid == 1
    assert seen[0].memory == 5 << 20
    assert seen[0].busy == pytest.approx(200_000, abs=10_000)
    assert seen[1] == Found(pid=2, memory=None, busy=0)


def test_a_process_on_two_lists_is_one_with_its_memory_told_once(node: Node, nvml: Nvml) -> None:
    drawing = replace(BUSY, kind="graphics", curve=())
    node.play(replace(GPU, processes=[BUSY, drawing, Process(pid=3, kind="mps", memory_mib=7)]))

    with reading(nvml) as reader:
        seen = part(reader).processes

    assert seen
    assert [(each.pid, each.memory) for each in seen] == [(1, 5 << 20), (3, 7 << 20)]


def test_what_zombies_tell_is_left_out(node: Node, nvml: Nvml) -> None:
    node.play(replace(GPU, processes=[BUSY, Process(pid=4, curve=[(-99, 2147483632)])]))

    with reading(nvml, seconds_ago=10) as reader:
        seen = sampled(reader)

    assert [each.busy for each in seen] == [pytest.approx(200_000, abs=10_000), 0]


def test_a_process_that_ended_since_is_told_of_with_what_it_used(node: Node, nvml: Nvml) -> None:
    node.play(replace(GPU, processes=[BUSY, Process(pid=3, curve=[(-99, 50)], end=-1)]))

    with reading(nvml, seconds_ago=10) as reader:
        seen = sampled(reader)

    assert seen[1].pid == 3
    assert seen[1].memory is None
    assert seen[1].busy == pytest.approx(500_000, abs=20_000)  # while it lived


def test_a_gpu_that_nobody_uses_has_no_processes(node: Node, nvml: Nvml) -> None:
    node.play(GPU)

    with reading(nvml) as reader:
        assert part(reader).processes == ()


def test_how_busy_processes_were_since_a_reading_of_just_now_is_not_known(node: Node, nvml: Nvml) -> None:
    node.play(replace(GPU, processes=[BUSY]))

    with reading(nvml, seconds_ago=-3) as reader:
        assert part(reader).processes == (Found(pid=1, memory=5 << 20),)


def test_each_sample_is_told_once(node: Node, nvml: Nvml) -> None:
    node.play(replace(GPU, processes=[BUSY]))

    def busy() -> int | None:
        (only,) = part(reader).processes or ()
        return only.busy

    with reading(nvml, seconds_ago=10) as reader:
        assert busy()
        until(lambda: busy() is None)
        until(lambda: busy() is not None)


def test_on_gpus_that_do_not_tell_it_no_process_is_busy_or_idle(node: Node, nvml: Nvml) -> None:
    node.play(replace(GPU, processes=[BUSY], faults=[Fault(function="nvmlDeviceGetProcessUtilization", code=3)]))

    with reading(nvml, seconds_ago=10) as reader:
        assert part(reader).processes == (Found(pid=1, memory=5 << 20),)


def test_processes_that_cannot_be_listed_are_not_none(node: Node, nvml: Nvml) -> None:
    node.play(replace(GPU, processes=[BUSY]))

    with reading(nvml) as reader:
        node.play(replace(GPU, faults=[Fault(function="nvmlDeviceGetComputeRunningProcesses", code=7)]))
        assert part(reader).processes is None


def test_the_pod_of_a_process_is_asked_for_once_it_is_there(node: Node, nvml: Nvml) -> None:
    asked: list[int] = []
    node.play(replace(GPU, processes=[BUSY, Process(pid=2), Process(pid=3)]))

    def pod_of(pid: int) -> str | None:
        asked.append(pid)
        return {1: "pod-a", 2: ""}.get(pid)

    with reading(nvml, pod_of=pod_of) as reader:
        look(reader)
        seen = part(reader).processes

    assert seen
    assert [each.pod_uid for each in seen] == ["pod-a", "", None]
    assert asked == [1, 2, 3, 3]

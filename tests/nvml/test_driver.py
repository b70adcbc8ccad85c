"""Our NVML, as the real pynvml sees it."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.nvml.remote import Refused, Remote
from tests.nvml.script import (
    Fault,
    Gpu,
    Hang,
    Process,
    Script,
    Throttle,
    average,
    counted_mj,
    integral,
)

TIMEOUT, LOST, MISMATCH, UNKNOWN = 10, 15, 18, 999
NOT_SUPPORTED, NOT_FOUND = 3, 6
HOUR_US = 3600 * 10**6
UTILIZATION = "nvmlDeviceGetSamples(gpu('GPU-a'), NVML_GPU_UTILIZATION_SAMPLES, {})[1]"
GPU = Gpu(uuid="GPU-a", curve=[(-100, 0), (-19, 30), (-12, 87.5), (-5, 10), (3600, 99)], energy_since=-100)


def now_us() -> int:
    return time.time_ns() // 1000


def script(*gpus: Gpu) -> Script:
    """Whose origin is now, on a full second: sixths of a second are whole numbers of it."""
    return Script(origin_us=now_us() // 10**6 * 10**6, gpus=gpus)


def test_a_gpu_tells_what_it_is(remote: Remote) -> None:
    remote.play(replace(script(replace(GPU, minor=3, pci="00000000:3B:00.0")), driver="580.1", nvml="13.580.1"))

    assert remote.ask("nvmlSystemGetDriverVersion()") == "580.1"
    assert remote.ask("nvmlSystemGetNVMLVersion()") == "13.580.1"
    assert remote.ask("nvmlSystemGetCudaDriverVersion()") == 12080
    assert remote.ask("nvmlDeviceGetCount()") == 1
    assert remote.ask("nvmlDeviceGetUUID(nvmlDeviceGetHandleByIndex(0))") == "GPU-a"
    assert remote.ask("nvmlDeviceGetName(gpu('GPU-a'))") == GPU.model
    assert remote.ask("nvmlDeviceGetMinorNumber(gpu('GPU-a'))") == 3
    assert remote.ask("nvmlDeviceGetPciInfo(gpu('GPU-a'))")["busId"] == "00000000:3B:00.0"
    assert remote.ask("nvmlDeviceGetArchitecture(gpu('GPU-a'))") == 9
    assert remote.ask("nvmlDeviceGetTemperature(gpu('GPU-a'), 0)") == 40
    assert remote.ask("nvmlDeviceGetTemperatureV(gpu('GPU-a'), 0)") == 40
    assert remote.ask("nvmlDeviceGetClockInfo(gpu('GPU-a'), NVML_CLOCK_MEM)") == 2619
    assert remote.ask("nvmlDeviceGetEnforcedPowerLimit(gpu('GPU-a'))") == 700_000


def test_memory_counts_what_is_reserved_as_used_in_its_first_version_alone(remote: Remote) -> None:
    remote.play(script(replace(GPU, memory_mib=1000, used_mib=200, reserved_mib=50)))

    first = remote.ask("nvmlDeviceGetMemoryInfo(gpu('GPU-a'))")
    second = remote.ask("nvmlDeviceGetMemoryInfo(gpu('GPU-a'), nvmlMemory_v2)")

    assert {name: size >> 20 for name, size in first.items()} == {"total": 1000, "free": 750, "used": 250}
    assert (second["used"] >> 20, second["reserved"] >> 20, second["free"] >> 20) == (200, 50, 750)


def test_utilisation_samples_integrate_to_the_curve(remote: Remote) -> None:
    scene = script(GPU)
    remote.play(scene)

    samples = [(s["timeStamp"] - scene.origin_us, s["sampleValue"]) for s in remote.ask(UTILIZATION.format(0))]

    starts = [at for at, _ in samples[:-1]]
    ends = [at for at, _ in samples[1:]]
    assert len(samples) == 120
    assert all(end - start in {166_666, 166_667} for start, end in zip(starts, ends, strict=True))
    for (_, value), start, end in zip(samples[1:], starts, ends, strict=True):
        assert abs(value - average(GPU.curve, start, end)) <= 0.5
    summed = sum(value * (end - start) for (_, value), start, end in zip(samples[1:], starts, ends, strict=True))
    assert abs(summed - integral(GPU.curve, starts[0], ends[-1])) <= (ends[-1] - starts[0]) / 2


def test_samples_are_told_once_to_who_says_which_it_has_seen(remote: Remote) -> None:
    remote.play(script(GPU))
    seen = remote.ask(UTILIZATION.format(0))[-1]["timeStamp"]

    def newer() -> bool:
        return remote.code(UTILIZATION.format(seen)) != NOT_FOUND

    remote.until(newer)
    assert remote.ask(UTILIZATION.format(seen))[0]["timeStamp"] - seen in {166_666, 166_667}
    assert remote.code(UTILIZATION.format(now_us() + HOUR_US)) == NOT_FOUND


def test_the_rates_are_those_of_the_last_sixth(remote: Remote) -> None:
    remote.play(script(replace(GPU, curve=[(-9, 45)], shares=[(10, 50)])))

    assert remote.ask("nvmlDeviceGetUtilizationRates(gpu('GPU-a'))") == {"gpu": 45, "memory": 22}


def test_energy_is_the_integral_of_power_and_grows(remote: Remote) -> None:
    scene = script(GPU)
    remote.play(scene)

    before_us = now_us() - scene.origin_us
    energy = remote.ask("nvmlDeviceGetTotalEnergyConsumption(gpu('GPU-a'))")
    after_us = now_us() - scene.origin_us

    assert counted_mj(GPU, before_us) <= energy <= counted_mj(GPU, after_us)
    assert remote.ask("nvmlDeviceGetPowerUsage(gpu('GPU-a'))") == 70_000 + 63_000
    remote.until(lambda: remote.ask("nvmlDeviceGetTotalEnergyConsumption(gpu('GPU-a'))") > energy)


def test_a_reset_sets_energy_to_nothing(remote: Remote) -> None:
    scene = script(replace(GPU, resets=[-1]))
    remote.play(scene)

    energy = remote.ask("nvmlDeviceGetTotalEnergyConsumption(gpu('GPU-a'))")

    assert 133_000 <= energy <= counted_mj(scene.gpus[0], now_us() - scene.origin_us)


def test_fields_answer_each_for_itself(remote: Remote) -> None:
    throttle = Throttle(field=74, start=-3, end=-1)
    remote.play(script(replace(GPU, power_scopes=[0], throttles=[throttle, Throttle(field=270, start=-1)])))

    fields = remote.ask("nvmlDeviceGetFieldValues(gpu('GPU-a'), [83, 185, (186, 0), (186, 1), 74, 76, 4711])[:]")

    assert [field["nvmlReturn"] for field in fields] == [0, 0, 0, NOT_SUPPORTED, 0, 0, NOT_SUPPORTED]
    assert [field["value"] for field in fields][1:6] == [133_000, 133_000, 0, 2 * 10**9, 0]
    assert remote.ask("nvmlDeviceGetCurrentClocksEventReasons(gpu('GPU-a'))") == 0x40


def test_errors_of_the_memory_are_counted_by_kind(remote: Remote) -> None:
    remote.play(script(replace(GPU, ecc=(1, 2, 3, 4), remapped=(5, 6, 1, 0))))

    def errors(kind: int, counter: int) -> int:
        return int(remote.ask(f"nvmlDeviceGetTotalEccErrors(gpu('GPU-a'), {kind}, {counter})"))

    assert [errors(0, 0), errors(1, 0), errors(0, 1), errors(1, 1)] == [1, 2, 3, 4]
    assert remote.ask("nvmlDeviceGetMemoryErrorCounter(gpu('GPU-a'), 1, 1, NVML_MEMORY_LOCATION_DRAM)") == 4
    assert remote.ask("nvmlDeviceGetMemoryErrorCounter(gpu('GPU-a'), 1, 1, NVML_MEMORY_LOCATION_SRAM)") == 0
    assert remote.ask("nvmlDeviceGetRemappedRows(gpu('GPU-a'))") == [5, 6, 1, 0]
    remote.play(script(replace(GPU, ecc=None, remapped=None)))
    assert remote.code("nvmlDeviceGetTotalEccErrors(gpu('GPU-a'), 0, 0)") == NOT_SUPPORTED
    assert remote.code("nvmlDeviceGetRemappedRows(gpu('GPU-a'))") == NOT_SUPPORTED


def test_processes_are_listed_by_kind(remote: Remote) -> None:
    gone = Process(pid=4, end=-1)
    processes = [Process(pid=1, memory_mib=5), Process(pid=2, memory_mib=None), Process(pid=3, kind="mps"), gone]
    remote.play(script(replace(GPU, processes=processes)))

    computing = remote.ask("nvmlDeviceGetComputeRunningProcesses(gpu('GPU-a'))")

    assert [(process["pid"], process["usedGpuMemory"]) for process in computing] == [(1, 5 << 20), (2, None)]
    assert [p["pid"] for p in remote.ask("nvmlDeviceGetMPSComputeRunningProcesses(gpu('GPU-a'))")] == [3]
    assert remote.ask("nvmlDeviceGetGraphicsRunningProcesses(gpu('GPU-a'))") == []


def test_the_utilisation_of_processes_has_its_traps(remote: Remote) -> None:
    utilisation = "nvmlDeviceGetProcessUtilization(gpu('GPU-a'), {})"
    busy, ended = Process(pid=1, curve=[(-9, 20)]), Process(pid=3, curve=[(-9, 50)], start=-2.5, end=-2)
    zombie, idle = Process(pid=4, curve=[(-99, 2147483632)]), Process(pid=2)
    scene = script(replace(GPU, processes=[busy, idle, ended, zombie]))
    remote.play(scene)

    samples = {s["pid"]: s for s in remote.ask(utilisation.format(scene.origin_us - 3 * 10**6))}

    assert {pid: sample["smUtil"] for pid, sample in samples.items()} == {1: 20, 3: 25, 4: 2147483632}
    assert samples[3]["timeStamp"] == scene.origin_us - 2 * 10**6
    assert remote.code(utilisation.format(now_us() + HOUR_US)) == NOT_FOUND
    remote.play(script(GPU))
    with pytest.raises(Refused, match="NVML answered 0"):
        remote.ask(utilisation.format(0))


def test_what_a_script_faults_is_refused_while_it_says_so(remote: Remote) -> None:
    name = Fault(function="nvmlDeviceGetName", code=4)
    memory = Fault(function="nvmlDeviceGetMemoryInfo", code=UNKNOWN, start=-2, end=-1)
    remote.play(script(replace(GPU, faults=[name, memory]), Gpu(uuid="GPU-b")))

    assert remote.code("nvmlDeviceGetName(gpu('GPU-a'))") == 4
    assert remote.code("nvmlDeviceGetName(gpu('GPU-b'))") == 0
    assert remote.code("nvmlDeviceGetMemoryInfo(gpu('GPU-a'), nvmlMemory_v2)") == 0
    remote.play(script(replace(GPU, faults=[replace(memory, end=3600)])))
    assert remote.code("nvmlDeviceGetMemoryInfo(gpu('GPU-a'), nvmlMemory_v2)") == UNKNOWN


def test_a_hang_holds_up_that_call_alone_until_the_script_ends_it(remote: Remote) -> None:
    remote.play(script(replace(GPU, faults=[Hang(function="nvmlDeviceGetPowerUsage")]), Gpu(uuid="GPU-b")))

    hanging = remote.start("nvmlDeviceGetPowerUsage(gpu('GPU-a'))")

    assert remote.ask("nvmlDeviceGetPowerUsage(gpu('GPU-b'))") == 70_000
    assert remote.ask("nvmlDeviceGetTemperature(gpu('GPU-a'), 0)") == 40
    assert not hanging.done()
    remote.play(script(GPU))
    assert hanging.result(20) == 133_000


def test_even_the_search_for_a_gpu_may_hang(remote: Remote) -> None:
    remote.play(script(replace(GPU, faults=[Hang(function="*")]), Gpu(uuid="GPU-b")))

    searches = [remote.start(f"nvmlDeviceGetHandleBy{search}") for search in ("Index(0)", "UUID('GPU-a')")]

    assert remote.code("nvmlDeviceGetHandleByIndex(1)") == 0
    assert not any(search.done() for search in searches)
    remote.play(script(GPU))
    assert [search.result(20) for search in searches] == ["a handle", "a handle"]


def test_many_threads_may_call_while_scripts_change(remote: Remote) -> None:
    remote.play(script(GPU))
    measured = "sorted({nvmlDeviceGetTemperature(gpu('GPU-a'), 0) for _ in range(500)})"

    calling = [remote.start(measured) for _ in range(8)]
    for temperature in range(41, 100):
        remote.play(script(replace(GPU, temperature=temperature), Gpu(uuid="GPU-b")))

    assert all(40 <= seen[0] <= seen[-1] < 100 for seen in (call.result(20) for call in calling))


def test_a_hang_may_be_a_delay(remote: Remote) -> None:
    remote.play(replace(script(GPU), faults=[Hang(function="nvmlDeviceGetCount", seconds=0.05)]))

    began = time.monotonic()

    assert remote.ask("nvmlDeviceGetCount()") == 1
    assert time.monotonic() - began >= 0.05


def test_a_lost_gpu_is_refused_and_the_others_go_on(remote: Remote) -> None:
    remote.play(script(GPU, Gpu(uuid="GPU-b")))
    assert remote.code("nvmlDeviceGetPowerUsage(gpu('GPU-a'))") == 0

    remote.play(script(replace(GPU, lost=0), Gpu(uuid="GPU-b")))

    assert remote.code("nvmlDeviceGetPowerUsage(gpu('GPU-a'))") == LOST
    assert remote.code("nvmlDeviceGetHandleByIndex(0)") == LOST
    assert remote.ask("nvmlDeviceGetCount()") == 2
    assert remote.code("nvmlDeviceGetPowerUsage(gpu('GPU-b'))") == 0
    remote.play(script(Gpu(uuid="GPU-b")))
    assert remote.code("nvmlDeviceGetPowerUsage(gpu('GPU-a'))") == LOST


def test_an_upgraded_driver_refuses_all_calls(remote: Remote) -> None:
    remote.play(replace(script(GPU), mismatch=-1, driver="580.1"))

    assert remote.code("nvmlDeviceGetCount()") == MISMATCH
    assert remote.code("nvmlInit()") == MISMATCH
    remote.play(replace(script(GPU), mismatch=3600))
    assert remote.code("nvmlDeviceGetCount()") == 0


def test_nothing_is_told_before_nvml_is_initialised(remote: Remote) -> None:
    remote.play(replace(script(GPU), uninitialised=-3600))
    assert remote.code("nvmlDeviceGetCount()") == 0  # it was initialised since
    remote.play(replace(script(GPU), origin_us=now_us(), uninitialised=0))

    assert remote.code("nvmlDeviceGetCount()") == 1
    remote.ask("nvmlInit()")
    assert remote.ask("nvmlDeviceGetCount()") == 1
    remote.ask("nvmlShutdown()")
    assert remote.code("nvmlDeviceGetCount()") == 1


def test_a_driver_may_fail_to_start(remote: Remote) -> None:
    remote.play(replace(script(GPU), init_error=9))

    assert remote.code("nvmlInit()") == 9


def test_a_broken_script_is_complained_of_and_the_last_good_one_stays(remote: Remote, tmp_path: Path) -> None:
    remote.play(script(GPU))
    assert remote.ask("nvmlDeviceGetCount()") == 1

    (tmp_path / "gpus.txt").write_text("origin 0\ngpu GPU-b\nmemory much\n")

    assert remote.code("nvmlInit()") == UNKNOWN
    assert remote.ask("nvmlDeviceGetUUID(nvmlDeviceGetHandleByIndex(0))") == "GPU-a"
    assert remote.errors.read_text().endswith("gpus.txt:3: memory: not an integer\n")

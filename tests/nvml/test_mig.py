"""A GPU that is cut, as the real pynvml sees it, and the activity that only hardware counters show of it."""

import json
import time
from dataclasses import replace

import pytest

from tests.nvml.remote import Remote
from tests.nvml.script import Gpu, Mig, Process, Script, average

INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND = 2, 3, 6
SMALL = Mig(uuid="MIG-small", index=0, gi=9, profile="1g.10gb", curve=[(-9, 12.5)])
LARGE = Mig(
    uuid="MIG-large",
    index=4,
    gi=2,
    profile="3g.40gb",
    gi_slices=3,
    ci_slices=3,
    processors=60,
    memory_mib=40448,
    used_mib=300,
    curve=[(-9, 80)],
)
CUT = Gpu(uuid="GPU-a", mig_mode=True, mig=[SMALL, LARGE], curve=[(-9, 60)])
SAMPLES = "(keep('first', nvmlGpmSampleAlloc()), keep('second', nvmlGpmSampleAlloc()))"


def script(*gpus: Gpu) -> Script:
    return Script(origin_us=time.time_ns() // 1000, gpus=gpus)


def sampled(remote: Remote, take: str, *, ids: tuple[int, ...] = (2,)) -> dict[int, float]:
    """Metrics between two samples, of which `take` fills `{}`."""
    remote.ask(SAMPLES)
    remote.ask(take.format("first"))
    remote.ask(take.format("second"))
    answer = remote.ask(f"metrics(first, second, *{json.dumps(ids)})")
    return {int(metric): value for metric, value in answer.items()}


def test_the_indices_of_mig_devices_have_gaps(remote: Remote) -> None:
    remote.play(script(CUT))

    most = remote.ask("nvmlDeviceGetMaxMigDeviceCount(gpu('GPU-a'))")
    codes = [remote.code(f"nvmlDeviceGetMigDeviceHandleByIndex(gpu('GPU-a'), {i})") for i in range(most)]

    assert remote.ask("nvmlDeviceGetMigMode(gpu('GPU-a'))") == [1, 1]
    assert codes == [0, NOT_FOUND, NOT_FOUND, NOT_FOUND, 0, NOT_FOUND, NOT_FOUND]


def test_a_mig_device_tells_what_it_is(remote: Remote) -> None:
    remote.play(script(CUT))
    remote.ask("keep('mig', nvmlDeviceGetMigDeviceHandleByIndex(gpu('GPU-a'), 4))")

    attributes = remote.ask("nvmlDeviceGetAttributes(mig)")

    assert remote.ask("nvmlDeviceGetUUID(mig)") == "MIG-large"
    assert remote.ask("nvmlDeviceGetName(mig)") == "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    assert remote.ask("nvmlDeviceGetGpuInstanceId(mig)") == 2
    assert remote.ask("nvmlDeviceGetComputeInstanceId(mig)") == 0
    assert remote.ask("nvmlDeviceIsMigDeviceHandle(mig)") == 1
    assert remote.ask("nvmlDeviceGetUUID(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig))") == "GPU-a"
    assert remote.ask("nvmlDeviceGetMemoryInfo(mig)")["used"] == 300 << 20
    assert (attributes["gpuInstanceSliceCount"], attributes["computeInstanceSliceCount"]) == (3, 3)
    assert (attributes["multiprocessorCount"], attributes["memorySizeMB"]) == (60, 40448)


def test_a_cut_gpu_tells_no_utilisation(remote: Remote) -> None:
    remote.play(script(replace(CUT, processes=[Process(pid=1, gi=2, ci=0, curve=[(-9, 9)])])))

    assert remote.code("nvmlDeviceGetUtilizationRates(gpu('GPU-a'))") == NOT_SUPPORTED
    assert remote.code("nvmlDeviceGetSamples(gpu('GPU-a'), NVML_GPU_UTILIZATION_SAMPLES, 0)") == NOT_SUPPORTED
    assert remote.code("nvmlDeviceGetProcessUtilization(gpu('GPU-a'), 0)") == NOT_SUPPORTED
    assert remote.code("nvmlDeviceGetUtilizationRates(gpu('MIG-large'))") == NOT_SUPPORTED
    assert remote.code("nvmlDeviceGetTotalEnergyConsumption(gpu('MIG-large'))") == NOT_SUPPORTED
    assert remote.code("nvmlDeviceGetTotalEnergyConsumption(gpu('GPU-a'))") == 0


def test_a_process_is_listed_by_its_mig_device_and_by_the_whole_gpu(remote: Remote) -> None:
    remote.play(script(replace(CUT, processes=[Process(pid=1, gi=2, ci=0), Process(pid=2, gi=9, ci=0)])))

    def pids(uuid: str) -> list[int]:
        return [process["pid"] for process in remote.ask(f"nvmlDeviceGetComputeRunningProcesses(gpu('{uuid}'))")]

    assert (pids("MIG-large"), pids("MIG-small"), pids("GPU-a")) == ([1], [2], [1, 2])


def test_a_handle_goes_stale_when_its_instance_is_destroyed(remote: Remote) -> None:
    remote.play(script(CUT))
    assert remote.code("nvmlDeviceGetUUID(gpu('MIG-large'))") == 0

    remote.play(script(replace(CUT, mig=[SMALL])))

    assert remote.code("nvmlDeviceGetUUID(gpu('MIG-large'))") == INVALID_ARGUMENT
    assert remote.code("nvmlDeviceGetUUID(gpu('MIG-small'))") == 0


@pytest.mark.parametrize("take", ["nvmlGpmMigSampleGet(gpu('GPU-a'), 2, {})", "nvmlGpmSampleGet(gpu('MIG-large'), {})"])
def test_the_activity_of_a_mig_device_is_the_average_of_its_curve(remote: Remote, take: str) -> None:
    remote.play(script(replace(CUT, shares=[(10, 25)])))

    assert sampled(remote, take, ids=(1, 2, 3, 5, 10, 99)) == {1: 80, 2: 80, 3: 80, 5: 80, 10: 20, 99: -NOT_SUPPORTED}


def test_compute_instances_share_the_activity_of_their_gpu_instance(remote: Remote) -> None:
    third = replace(LARGE, ci_slices=1)
    remote.play(script(replace(CUT, mig=[third, replace(third, uuid="MIG-b", index=5, ci=1, curve=[(-9, 20)])])))

    assert sampled(remote, "nvmlGpmMigSampleGet(gpu('GPU-a'), 2, {})")[2] == pytest.approx(100 / 3)


def test_activity_is_averaged_over_a_step_of_the_curve(remote: Remote) -> None:
    before = script(replace(CUT, curve=[(-9, 100)]))
    remote.play(before)
    remote.ask(SAMPLES)

    def span(take: str) -> tuple[int, int]:
        began = time.time_ns() // 1000
        remote.ask(take)
        return began - before.origin_us, time.time_ns() // 1000 - before.origin_us

    first = span("nvmlGpmSampleGet(gpu('GPU-a'), first)")
    step = replace(CUT, curve=[(-9, 100), ((first[1] + 1) / 10**6, 0)])
    remote.play(replace(before, gpus=[step]))
    second = span("nvmlGpmSampleGet(gpu('GPU-a'), second)")

    measured = remote.ask("metrics(first, second, 1)")["1"]
    least, most = average(step.curve, first[1], second[1]), average(step.curve, first[0], second[0])
    assert 0 < least <= measured <= most < 100


def test_hardware_that_counts_no_activity_says_so(remote: Remote) -> None:
    remote.play(script(replace(CUT, gpm=False)))
    remote.ask(SAMPLES)

    assert remote.ask("nvmlGpmQueryDeviceSupport(gpu('GPU-a'))")["isSupportedDevice"] == 0
    assert remote.code("nvmlGpmMigSampleGet(gpu('GPU-a'), 2, first)") == NOT_SUPPORTED

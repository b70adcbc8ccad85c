from dataclasses import replace

from gputally.devices.nvml.condition import reasons_of
from gputally.devices.nvml.library import Nvml
from gputally.model.devices import GpuCondition
from tests.nvml.script import Fault, Gpu, Throttle, counted_mj
from tests.unit.devices.nvml.conftest import Node, now_us
from tests.unit.devices.nvml.readers import counting, look, reading

GPU = Gpu(
    uuid="GPU-a",
    curve=[(-9, 50)],
    energy_since=-100,
    temperature=61,
    power_limit_watts=650,
    ecc=(1, 2, 30, 40),
    remapped=(5, 6, 1, 0),
    throttles=[Throttle(field=270, start=-3, end=-1)],
    used_mib=700,
    memory_mib=1000,
    reserved_mib=100,
)


def test_a_gpu_tells_what_it_is_and_how_it_does(node: Node, nvml: Nvml) -> None:
    node.play(replace(GPU, minor=3, pci="00000000:3B:00.0"))

    with reading(nvml) as reader:
        seen = look(reader)

    condition = seen.condition
    assert (seen.gpu.uuid, seen.gpu.index, seen.gpu.minor) == ("GPU-a", 0, 3)
    assert (seen.gpu.model, seen.gpu.pci_bus_id) == ("NVIDIA-H100-80GB-HBM3", "00000000:3B:00.0")
    assert (seen.parts[0].memory_used, seen.parts[0].memory_total) == (
        700 << 20,
        1000 << 20,
    )  # what is reserved is not used
    assert (condition.power, condition.power_limit, condition.temperature) == (385_000, 650_000, 61)
    assert (condition.sm_clock, condition.memory_clock) == (1980, 2619)
    assert (condition.ecc_corrected, condition.ecc_uncorrected) == (30, 40)
    assert (condition.rows_remapped_correctable, condition.rows_remapped_uncorrectable) == (5, 6)
    assert (condition.rows_pending, condition.rows_failed) == (True, False)
    assert condition.throttled[3] == ("hw_thermal", 2 * 10**9)
    assert condition.throttle_reasons == frozenset()


def test_energy_is_the_driver_s_counter(node: Node, nvml: Nvml) -> None:
    node.play(GPU)

    with reading(nvml) as reader:
        before = counted_mj(GPU, now_us() - node.origin_us)
        energy = look(reader).condition.energy
        after = counted_mj(GPU, now_us() - node.origin_us)

    assert energy is not None
    assert before <= energy <= after


def test_a_gpu_without_fields_tells_power_and_energy_by_their_functions(node: Node, nvml: Nvml) -> None:
    node.play(replace(GPU, faults=[Fault(function="nvmlDeviceGetFieldValues", code=13)]))

    with reading(nvml) as reader:
        condition = look(reader).condition

    assert condition.power == 385_000
    assert condition.energy is not None
    assert condition.energy > 0
    assert condition.throttled == ()


def test_what_is_not_supported_is_absent_and_not_zero(node: Node, nvml: Nvml) -> None:
    node.play(Gpu(uuid="GPU-a", faults=[Fault(function="nvmlDeviceGetFieldValues", code=13), *every_gauge()]))

    with reading(nvml) as reader:
        seen = look(reader)

    assert seen.condition == GpuCondition()
    assert (seen.parts[0].memory_used, seen.parts[0].memory_total) == (None, None)
    assert (seen.gpu.minor, seen.gpu.pci_bus_id) == (None, "")
    assert seen.parts[0].processes is None


def every_gauge() -> list[Fault]:
    names = "MemoryInfo PowerUsage TotalEnergyConsumption Temperature ClockInfo EnforcedPowerLimit MinorNumber PciInfo"
    names += " CurrentClocksEventReasons CurrentClocksThrottleReasons TotalEccErrors RemappedRows"
    names += " ComputeRunningProcesses GraphicsRunningProcesses MPSComputeRunningProcesses"
    return [Fault(function=f"nvmlDeviceGet{name}", code=3) for name in names.split()]


def test_what_is_not_supported_is_asked_once(node: Node, nvml: Nvml) -> None:
    node.play(replace(GPU, remapped=None))

    with counting(nvml, nvmlDeviceGetRemappedRows=1) as asked, reading(nvml) as reader:
        for _ in range(5):
            look(reader)

    assert asked.total == 1


def test_what_changes_slowly_is_kept_between_its_readings(node: Node, nvml: Nvml) -> None:
    node.play(GPU)

    with reading(nvml, slow_every=3) as reader:
        look(reader)
        node.play(replace(GPU, temperature=80, curve=[(-9, 100)]))
        seen = [look(reader).condition for _ in range(3)]

    assert [condition.temperature for condition in seen] == [61, 61, 80]
    assert [condition.power for condition in seen] == [700_000] * 3


def test_a_value_that_fails_once_is_absent_once(node: Node, nvml: Nvml) -> None:
    node.play(GPU)

    with reading(nvml) as reader:
        node.play(replace(GPU, faults=[Fault(function="nvmlDeviceGetTemperature", code=20)]))
        assert look(reader).condition.temperature is None
        node.play(GPU)
        assert look(reader).condition.temperature == 61


def test_reasons_have_names() -> None:
    assert reasons_of(0x44) == frozenset({"sw_power_cap", "hw_thermal"})
    assert reasons_of(1 << 40) == frozenset()
    assert reasons_of(None) is None

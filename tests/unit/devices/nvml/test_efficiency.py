"""Activity of multiprocessors, tensor cores and memory, from GPM counters."""

from dataclasses import replace

import pytest

from gputally.devices.nvml.gpu_reader import GpuReader
from gputally.devices.nvml.library import Nvml
from gputally.model.devices import BUSY, Efficiency
from tests.nvml.script import Gpu, Mig
from tests.unit.devices.nvml.conftest import Node, now_us
from tests.unit.devices.nvml.readers import SECOND_US, part, reading

SHARES = [(2, 90), (3, 40), (5, 25), (10, 60)]
GPU = Gpu(uuid="GPU-a", curve=[(-100, 80)], shares=SHARES)


def after_each(reader: GpuReader, *, readings: int) -> list[Efficiency]:
    """The sums of the only device after each of some readings, a second apart."""
    start_us, found = now_us(), []
    for number in range(readings):
        (only,) = reader.read(start_us + number * SECOND_US).parts
        assert only.efficiency
        found.append(only.efficiency)
    return found


def ratios(efficiency: Efficiency) -> list[float]:
    sums = (efficiency.sm_active, efficiency.sm_occupancy, efficiency.tensor_active, efficiency.dram_active)
    return [each / efficiency.time_us / BUSY for each in sums]


def test_each_share_of_the_device_is_summed_over_the_time(node: Node, nvml: Nvml) -> None:
    node.play(GPU)

    with reading(nvml, slow_every=1) as reader:
        first, *_, last = after_each(reader, readings=5)

    assert first == Efficiency(), "one sample covers no time"
    assert last.time_us == 4 * SECOND_US
    assert ratios(last) == pytest.approx([0.72, 0.32, 0.20, 0.48], rel=1e-6)


def test_it_is_read_as_rarely_as_other_slow_values(node: Node, nvml: Nvml) -> None:
    node.play(GPU)

    with reading(nvml, slow_every=4) as reader:
        found = [each.time_us for each in after_each(reader, readings=9)]

    assert found == [0] * 4 + [4 * SECOND_US] * 4 + [8 * SECOND_US]


def test_each_mig_device_has_that_of_its_instance(node: Node, nvml: Nvml) -> None:
    large = Mig(uuid="MIG-large", index=0, gi=1, gi_slices=3, ci_slices=3, profile="3g.40gb", curve=[(-9, 50)])
    node.play(replace(GPU, mig_mode=True, mig=[large]))

    with reading(nvml, slow_every=1) as reader:
        last = after_each(reader, readings=3)[-1]

    assert ratios(last) == pytest.approx([0.45, 0.20, 0.125, 0.30], rel=1e-6)


def test_a_gpu_without_the_counters_has_no_efficiency(node: Node, nvml: Nvml) -> None:
    node.play(replace(GPU, gpm=False))

    with reading(nvml) as reader:
        assert part(reader).efficiency is None

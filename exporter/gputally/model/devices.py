"""GPU readings and device assignments of the node agent. Missing values are None, never 0."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

BUSY: Final = 1_000_000
"""Utilisation of a GPU that is always busy: utilisation is in millionths."""
MOST_POWER: Final = 5_000_000
"""mW: more than any GPU draws, including other components in the reading."""


class Source(StrEnum):
    """The source of utilisation, the most accurate first."""

    SAMPLES = "samples"
    """The driver's sample buffer, which covers the whole time between two readings."""
    GPM = "gpm"
    """Counters of the GPU's activity (Hopper and later): exact over any time, and the only source for MIG devices."""
    RATES = "rates"
    """The utilisation of the last sampling period, polled periodically."""
    NONE = "none"


class Span(Struct, frozen=True, gc=False):
    """Utilisation was `busy` (millionths) from `from_us` to `to_us`, by the node's clock."""

    from_us: int
    to_us: int
    busy: int


class Process(Struct, frozen=True, kw_only=True, gc=False):
    """A process on a device: memory in bytes, and its own GPU utilisation since the last reading (millionths).

    `pod_uid` is the pod of its control group, "" if it belongs to no pod, None if that is unknown.
    """

    pid: int
    memory: int | None = None
    busy: int | None = None
    pod_uid: str | None = None


class Efficiency(Struct, frozen=True, gc=False):
    """How well a device used its hardware, summed since the agent first read it.

    `time_us` is the time with known values. The others are integrals over it of a share in millionths, in µs: of the
    multiprocessors that had a warp, of the warps that they can hold, of the time that tensor cores were active, and of
    the memory bandwidth.
    """

    time_us: int = 0
    sm_active: int = 0
    sm_occupancy: int = 0
    tensor_active: int = 0
    dram_active: int = 0

    def plus(self, time_us: int, shares: Sequence[int]) -> "Efficiency":
        """With a further interval, by its mean shares (millionths) in the order of the fields."""
        before = (self.sm_active, self.sm_occupancy, self.tensor_active, self.dram_active)
        sums = (total + time_us * share for total, share in zip(before, shares, strict=True))
        return Efficiency(self.time_us + time_us, *sums)


class Part(Struct, frozen=True, kw_only=True, gc=False):
    """A device with its own utilisation and memory: a whole GPU, or one MIG device.

    `weight` is its share of the physical GPU, in µGPU. `busy` covers the known part of the time since the last
    reading; it may end before this reading, but never starts before the end of the previous one.
    `processes` is None if they are unknown, `efficiency` where the GPU has no GPM counters.
    """

    uuid: str
    weight: int
    profile: str = ""
    gi: int | None = None
    ci: int | None = None
    placement: int | None = None
    source: Source = Source.NONE
    busy: tuple[Span, ...] = ()
    memory_used: int | None = None
    memory_total: int | None = None
    processes: tuple[Process, ...] | None = None
    efficiency: Efficiency | None = None


class GpuCondition(Struct, frozen=True, kw_only=True, gc=False):
    """The condition of a physical GPU: current values and cumulative counters.

    Power in mW, energy in mJ since the driver loaded, clocks in MHz, temperature in °C, throttling in ns by reason.
    """

    power: int | None = None
    power_limit: int | None = None
    energy: int | None = None
    temperature: int | None = None
    sm_clock: int | None = None
    memory_clock: int | None = None
    throttle_reasons: frozenset[str] | None = None
    throttled: tuple[tuple[str, int], ...] = ()
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    rows_remapped_correctable: int | None = None
    rows_remapped_uncorrectable: int | None = None
    rows_pending: bool | None = None
    rows_failed: bool | None = None


class Gpu(Struct, frozen=True, kw_only=True, gc=False):
    """A physical GPU. Its UUID is stable across reboots; its index and minor number may change.

    `model` is spelled like the node label of GPU Feature Discovery.
    """

    uuid: str
    index: int
    minor: int | None
    model: str
    pci_bus_id: str


class Reading(Struct, frozen=True, kw_only=True, gc=False):
    """One reading of one GPU at `at_us`. With MIG the `parts` are its MIG devices, otherwise the GPU itself."""

    gpu: Gpu
    at_us: int
    mig: bool
    parts: tuple[Part, ...]
    condition: GpuCondition = GpuCondition()


class PartAllocation(Struct, frozen=True, kw_only=True, gc=False, order=True):
    """The allocation of a part to a container: `replicas` of `replicas_in_all` (1 of 1 if it is not shared).

    `unit` is the weight of each replica in µGPU if the configuration sets it, else 0.
    """

    part: str
    namespace: str
    pod: str
    container: str
    resource: str
    replicas: int = 1
    replicas_in_all: int = 1
    pod_uid: str = ""
    unit: int = 0


class PartAllocations(Struct, frozen=True, kw_only=True, gc=False):
    """The allocations at `at_us` by the kubelet; `unknown` counts its devices that match no GPU of the node."""

    at_us: int
    held: tuple[PartAllocation, ...]
    unknown: int = 0
    unhealthy: frozenset[str] = frozenset()
    """UUIDs of parts that the device plugin no longer offers."""

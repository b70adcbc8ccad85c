"""What the driver tells of GPUs, and who holds them, as the node agent reads it. Absent is None, never 0."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

BUSY: Final = 1_000_000
"""Utilisation is in millionths: a GPU that is always busy."""


MOST_POWER: Final = 5_000_000
"""mW: more than any GPU draws, with all that may be counted with it."""


class Source(StrEnum):
    """Where utilisation comes from, the truest first."""

    SAMPLES = "samples"
    """The driver's own buffer of samples, so that nothing between two readings is missed."""
    GPM = "gpm"
    """Counters of the GPU's activity (Hopper and later): exact over any time, and the only way into MIG."""
    RATES = "rates"
    """The last period's utilisation, asked for now and then."""
    NONE = "none"


class Span(Struct, frozen=True, gc=False):
    """Utilisation was `busy` (millionths) from `from_us` to `to_us`, the node's clock."""

    from_us: int
    to_us: int
    busy: int


class Process(Struct, frozen=True, kw_only=True, gc=False):
    """A process on a device: memory in bytes, and how busy it alone kept the GPU since the last reading (millionths).

    `pod_uid` is the pod that its control group belongs to, "" for one of no pod, None where that cannot be seen.
    """

    pid: int
    memory: int | None = None
    busy: int | None = None
    pod_uid: str | None = None


class Part(Struct, frozen=True, kw_only=True, gc=False):
    """What utilisation and memory are told of: a whole GPU, or one MIG device.

    `weight` is how much of the physical GPU it is, in µGPU. `busy` covers the time since the last reading, as far as
    it is known; it may end before the reading, and lie a little before the last one's end never.
    `processes` is None where they cannot be told.
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


class GpuCondition(Struct, frozen=True, kw_only=True, gc=False):
    """How a physical GPU does: what is a number now, and what only ever grows.

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
    rows_remapped: int | None = None
    rows_pending: bool | None = None
    rows_failed: bool | None = None


class Gpu(Struct, frozen=True, kw_only=True, gc=False):
    """A physical GPU, which keeps its UUID over reboots, where its index and minor number may change.

    `model` is spelled like the node label of GPU Feature Discovery.
    """

    uuid: str
    index: int
    minor: int | None
    model: str
    pci_bus_id: str


class Reading(Struct, frozen=True, kw_only=True, gc=False):
    """One look at one GPU at `at_us`. With MIG the `parts` are its MIG devices, else the GPU itself."""

    gpu: Gpu
    at_us: int
    mig: bool
    parts: tuple[Part, ...]
    condition: GpuCondition = GpuCondition()


class PartAllocation(Struct, frozen=True, kw_only=True, gc=False, order=True):
    """A container holds a part: `replicas` of the `replicas_in_all` that share it (1 of 1 when nobody else may).

    `unit` is what each of them weighs in µGPU, where the configuration fixes it, else 0.
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
    """Who holds what at `at_us`, as the kubelet says; `unknown` counts the devices it named that no GPU here has."""

    at_us: int
    held: tuple[PartAllocation, ...]
    unknown: int = 0
    unhealthy: frozenset[str] = frozenset()
    """UUIDs of parts that the device plugin no longer offers."""

"""What the books say at an instant, for the agent's own /metrics."""

from msgspec import Struct

from gputally.metering.running import MeasuredWork, States


class GpuTotals(Struct, frozen=True, kw_only=True, gc=False):
    """One physical GPU since `since_us`, when it was first read; `states` add up to 10^6 µGPU x (at_us - since_us).

    `at_us` is when it was read last, or found lost; its utilisation is accounted up to `watermark_us`. `source` is
    how that is known.
    """

    uuid: str
    index: int
    model: str
    source: str
    lost: bool
    since_us: int
    at_us: int
    watermark_us: int
    states: States
    work: MeasuredWork


class AssignmentTotals(Struct, frozen=True, kw_only=True, gc=False):
    """All that containers of one name did with one part, one after the other; amounts as in model/usage.Hour.

    `held` is the integral of the share, in µs·µGPU. `share` (µGPU) and `memory_now` (bytes) are those of the present
    one: 0 and None after its end, when `is_held` is false. `gpu` is "" as long as nothing was read of the part.
    """

    gpu: str
    part: str
    namespace: str
    pod: str
    container: str
    resource: str
    pod_uid: str
    is_held: bool
    share: int
    held: int
    measured: int
    used: int
    burst: int
    memory: int
    memory_us: int
    energy: int
    memory_now: int | None


class DeviceSnapshot(Struct, frozen=True, kw_only=True, gc=False):
    """As of `at_us`; `allocations_us` is when the kubelet told last who holds what, None before it first did.

    `unknown_devices` are those it named then that no GPU here has. `dropped` counts holders that ended and were left
    out because there were too many.
    """

    at_us: int
    allocations_us: int | None
    unknown_devices: int
    dropped: int
    gpus: tuple[GpuTotals, ...]
    assignments: tuple[AssignmentTotals, ...]

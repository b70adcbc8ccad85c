"""Snapshot of the accounting for the agent's `/metrics`."""

from msgspec import Struct

from gputally.metering.gpu_sums import MeasuredWork, States


class GpuTotals(Struct, frozen=True, kw_only=True, gc=False):
    """Totals of one physical GPU since its first reading; `states` add up to 10^6 µGPU x (at_us - since_us).

    `at_us` is the time of the last reading, or of the last attempt if the GPU is lost. Utilisation, from `source`, is
    accounted up to `watermark_us`.
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
    """Totals of successive containers of one name on one part; amounts as in `usage_report.Hour`.

    `held` is the integral of the share, in µs·µGPU. `share` (µGPU) and `memory_now` (bytes) are current values: 0 and
    None once the assignment has ended and `is_held` is false. `gpu` is "" until the part is first read.
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
    """Totals at `at_us`; `allocations_us` is the time of the last successful kubelet poll, None before the first.

    `unknown_devices` counts the devices in that poll that match no GPU of the node. `dropped` counts ended assignments
    dropped because of the limit.
    """

    at_us: int
    allocations_us: int | None
    unknown_devices: int
    dropped: int
    gpus: tuple[GpuTotals, ...]
    assignments: tuple[AssignmentTotals, ...]

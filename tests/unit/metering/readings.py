"""What a driver and a kubelet tell, in seconds since half past an hour, GPUs and fractions of them."""

from typing import Any

from gputally.metering.device_accounts import DeviceAccounts
from gputally.metering.reporting import AssignmentTotals, GpuTotals
from gputally.model.devices import (
    Gpu,
    GpuCondition,
    Part,
    PartAllocation,
    PartAllocations,
    Process,
    Reading,
    Source,
    Span,
)
from gputally.model.units import GPU, GPU_SECOND, US_PER_HOUR, US_PER_SECOND
from gputally.model.usage import AssignmentReport, UsageReport

HOUR_US = 480_000 * US_PER_HOUR
START_US = HOUR_US + US_PER_HOUR // 2
NEXT_HOUR = 1800


def us(seconds: float) -> int:
    """The instant so many seconds after half past."""
    return START_US + round(seconds * US_PER_SECOND)


def span(from_s: float, to_s: float, busy: float) -> Span:
    return Span(us(from_s), us(to_s), round(busy * 1_000_000))


def part(*busy: Span, uuid: str = "GPU-0", weight: int = GPU, **more: Any) -> Part:  # noqa: ANN401 - any field of a part
    fields: dict[str, Any] = {"source": Source.SAMPLES}
    return Part(uuid=uuid, weight=weight, busy=busy, **fields | more)


def reading(at: float, *parts: Part, gpu: str = "GPU-0", energy: int | None = None) -> Reading:
    return Reading(
        gpu=Gpu(uuid=gpu, index=0, minor=0, model="NVIDIA H100", pci_bus_id="00000000:01:00.0"),
        at_us=us(at),
        mig=len(parts) != 1,
        parts=parts,
        condition=GpuCondition(energy=energy),
    )


def held(pod: str = "a", *, part: str = "GPU-0", container: str = "main", **more: Any) -> PartAllocation:  # noqa: ANN401 - any field
    return PartAllocation(part=part, namespace="ml", pod=pod, container=container, resource="nvidia.com/gpu", **more)


def allocations(at: float, *held: PartAllocation, **more: Any) -> PartAllocations:  # noqa: ANN401 - any field of allocations
    return PartAllocations(at_us=us(at), held=held, **more)


def process(pod_uid: str | None, busy: int | None = None, memory: int | None = None) -> Process:
    return Process(pid=1, pod_uid=pod_uid, busy=busy, memory=memory)


def report(books: DeviceAccounts, at: float) -> UsageReport:
    return books.report(us(at), "n1", "e1")


def assignment(books: DeviceAccounts, pod: str, at: float) -> AssignmentReport:
    """The only one of that pod in the report."""
    (found,) = [each for each in report(books, at).assignments if each.pod == pod]
    return found


def totals(books: DeviceAccounts, pod: str, at: float) -> AssignmentTotals:
    """The only ones of that pod in the snapshot."""
    (found,) = [each for each in books.snapshot(us(at)).assignments if each.pod == pod]
    return found


def gpu_totals(books: DeviceAccounts, at: float) -> GpuTotals:
    """Those of the only GPU."""
    (found,) = books.snapshot(us(at)).gpus
    return found


def seconds(gpu_time: int) -> float:
    """GPU-seconds."""
    return gpu_time / GPU_SECOND

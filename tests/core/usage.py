"""Usage reports of agents, in seconds since midnight and GPUs."""

from typing import Any

from gputally.model.observation import UsageReported
from gputally.model.units import GPU, US_PER_SECOND
from gputally.model.usage import AssignmentReport, GpuHour, GpuReport, Hour, UsageReport
from tests.core.manifests import us

FIRST_HOUR = us(0)


def gpu_us(gpu_seconds: float) -> int:
    """GPU-seconds in the unit of reports, µs·µGPU."""
    return round(gpu_seconds * US_PER_SECOND * GPU)


def hour(
    from_s: float, to_s: float, *, measured: float = 0, used: float = 0, burst: float = 0, joules: float = 0
) -> Hour:
    """Usage in the first hour, in GPU-seconds and joules."""
    return Hour(
        start_us=FIRST_HOUR,
        from_us=us(from_s),
        to_us=us(to_s),
        measured=gpu_us(measured),
        used=gpu_us(used),
        burst=gpu_us(burst),
        energy=round(joules * 1000),
    )


def assignment(
    *hours: Hour,
    pod: str = "a",
    since: float = 0,
    until: float | None = None,
    **more: Any,  # noqa: ANN401 - any field of an assignment
) -> AssignmentReport:
    """A container with one whole GPU, last seen at the end of `hours`, or at `until`."""
    latest_us = max((each.to_us for each in hours), default=us(since))
    seen: float | None = more.pop("seen", None)
    fields: dict[str, Any] = {
        "device": "GPU-0",
        "gpu": "GPU-0",
        "namespace": "ml",
        "container": "main",
        "resource": "nvidia.com/gpu",
        "share": GPU,
    }
    return AssignmentReport(
        pod=pod,
        since_us=us(since),
        seen_us=us(seen) if seen is not None else latest_us if until is None else us(until),
        until_us=None if until is None else us(until),
        hours=hours,
        **fields | more,
    )


def gpu(*, unattributed: float = 0, joules: float = 0, watermark: float = 0) -> GpuReport:
    """The unattributed usage of GPU-0 in the first hour."""
    amounts = GpuHour(start_us=FIRST_HOUR, unattributed=gpu_us(unattributed), energy=round(joules * 1000))
    return GpuReport(uuid="GPU-0", model="NVIDIA A100", source="samples", watermark_us=us(watermark), hours=(amounts,))


def report(*assignments: AssignmentReport, at: float, ahead: float = 0, **more: Any) -> UsageReport:  # noqa: ANN401 - any field of a report
    """The report at `at` of n1's agent, whose clock is `ahead` seconds ahead; watermark and kubelet are current."""
    now_us = us(at + ahead)
    fields: dict[str, Any] = {"epoch": "e1", "node": "n1", "watermark_us": now_us, "allocations_us": now_us}
    return UsageReport(version=1, now_us=now_us, assignments=assignments, **fields | more)


def usage(*assignments: AssignmentReport, at: float, **more: Any) -> UsageReported:  # noqa: ANN401 - any field of a report
    """The report as received at `at` by the aggregator's clock."""
    return UsageReported(report=report(*assignments, at=at, **more), at_us=us(at))

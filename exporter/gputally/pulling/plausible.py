"""Whether a report can be what an agent measured: numbers that cannot be must reach neither counters nor ledger."""

from collections.abc import Iterable
from typing import Final

from gputally.model.measured.usage_report import AssignmentReport, GpuReport, Hour, UsageReport
from gputally.model.units import US_PER_HOUR

_MOST: Final = 1 << 62
"""A ledger's numbers have 64 bits; an hour of a device stays a thousand times below."""
_MOST_MEMORY: Final = 1 << 100
_MOST_CHARACTERS: Final = 512
_MOST_GPUS: Final = 64
"""The largest machines have 16, and some are extended."""
_MOST_HOLDERS: Final = 20_000
"""Twice as many as an agent keeps."""
_MOST_HOURS: Final = 100
"""An agent keeps 72 and those that are not over."""


def implausible(report: UsageReport) -> str:
    """What cannot be; "" when all can."""
    numbers = (report.now_us, report.watermark_us, report.allocations_us or 0)
    if not (_numbers(numbers) and _texts((report.epoch,)) and report.epoch):
        return "the header of the report is implausible"
    if len(report.gpus) > _MOST_GPUS or len(report.assignments) > _MOST_HOLDERS:
        return f"{len(report.gpus)} GPUs with {len(report.assignments)} allocations are implausible for one node"
    for gpu in report.gpus:
        if not _gpu(gpu):
            return f"the report of GPU {gpu.uuid[:_MOST_CHARACTERS]} is implausible"
    for assignment in report.assignments:
        if not _assignment(assignment):
            name = f"{assignment.namespace}/{assignment.pod}"
            return f"the report of {name[:_MOST_CHARACTERS]} is implausible"
    return ""


def _gpu(gpu: GpuReport) -> bool:
    return (
        _texts((gpu.uuid, gpu.model, gpu.source))
        and len(gpu.hours) <= _MOST_HOURS
        and all(_numbers((gpu.watermark_us, hour.start_us, hour.unattributed, hour.energy)) for hour in gpu.hours)
    )


def _assignment(assignment: AssignmentReport) -> bool:
    texts = (
        assignment.device,
        assignment.gpu,
        assignment.namespace,
        assignment.pod,
        assignment.container,
        assignment.resource,
        assignment.pod_uid,
    )
    numbers = (
        assignment.since_us,
        assignment.seen_us,
        assignment.after_us or 0,
        assignment.until_us or 0,
        assignment.share,
    )
    return (
        _texts(texts)
        and _numbers(numbers)
        and len(assignment.hours) <= _MOST_HOURS
        and all(map(_hour, assignment.hours))
    )


def _hour(hour: Hour) -> bool:
    """It covers time of its hour, and the burst is part of what was used."""
    numbers = (hour.measured, hour.used, hour.burst, hour.memory_us, hour.energy)
    return (
        _numbers(numbers)
        and 0 <= hour.memory < _MOST_MEMORY
        and hour.burst <= hour.used
        and 0 <= hour.start_us <= hour.from_us <= hour.to_us <= hour.start_us + US_PER_HOUR < _MOST
    )


def _numbers(numbers: Iterable[int]) -> bool:
    return all(0 <= number < _MOST for number in numbers)


def _texts(texts: Iterable[str]) -> bool:
    return all(len(text) <= _MOST_CHARACTERS for text in texts)

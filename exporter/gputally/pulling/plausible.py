"""Plausibility check of usage reports, so that impossible values reach neither counters nor the ledger."""

from collections.abc import Iterable
from typing import Final

from gputally.model.units import US_PER_HOUR
from gputally.model.usage import AssignmentReport, GpuReport, Hour, UsageReport

_MAX: Final = 1 << 62
"""The ledger stores 64-bit integers; the values of one device hour are a thousand times smaller."""
_MAX_MEMORY: Final = 1 << 100
_MAX_CHARACTERS: Final = 512
_MAX_GPUS: Final = 64
"""The largest nodes have 16, and some can be extended."""
_MAX_ASSIGNMENTS: Final = 20_000
"""Twice the limit of an agent."""
_MAX_HOURS: Final = 100
"""An agent keeps at most 72, and unfinished hours."""


def implausible(report: UsageReport) -> str:
    """The first impossible part of the report; "" if the report is plausible."""
    numbers = (report.now_us, report.watermark_us, report.allocations_us or 0)
    if not (_valid_numbers(numbers) and _valid_texts((report.epoch,)) and report.epoch):
        return "the header of the report is implausible"
    if len(report.gpus) > _MAX_GPUS or len(report.assignments) > _MAX_ASSIGNMENTS:
        return f"{len(report.gpus)} GPUs with {len(report.assignments)} allocations are implausible for one node"
    for gpu in report.gpus:
        if not _gpu_plausible(gpu):
            return f"the report of GPU {gpu.uuid[:_MAX_CHARACTERS]} is implausible"
    for assignment in report.assignments:
        if not _assignment_plausible(assignment):
            name = f"{assignment.namespace}/{assignment.pod}"
            return f"the report of {name[:_MAX_CHARACTERS]} is implausible"
    return ""


def _gpu_plausible(gpu: GpuReport) -> bool:
    return (
        _valid_texts((gpu.uuid, gpu.model, gpu.source))
        and len(gpu.hours) <= _MAX_HOURS
        and all(_valid_numbers((gpu.watermark_us, hour.start_us, hour.unattributed, hour.energy)) for hour in gpu.hours)
    )


def _assignment_plausible(assignment: AssignmentReport) -> bool:
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
        _valid_texts(texts)
        and _valid_numbers(numbers)
        and len(assignment.hours) <= _MAX_HOURS
        and all(map(_hour_plausible, assignment.hours))
    )


def _hour_plausible(hour: Hour) -> bool:
    """Whether the covered time is within the hour, and `burst` is at most `used`."""
    numbers = (hour.measured, hour.used, hour.burst, hour.memory_us, hour.energy)
    return (
        _valid_numbers(numbers)
        and 0 <= hour.memory < _MAX_MEMORY
        and hour.burst <= hour.used
        and 0 <= hour.start_us <= hour.from_us <= hour.to_us <= hour.start_us + US_PER_HOUR < _MAX
    )


def _valid_numbers(numbers: Iterable[int]) -> bool:
    return all(0 <= number < _MAX for number in numbers)


def _valid_texts(texts: Iterable[str]) -> bool:
    return all(len(text) <= _MAX_CHARACTERS for text in texts)

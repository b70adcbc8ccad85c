"""What /v1/usage says, from the running books."""

from collections.abc import Iterable

from msgspec.structs import replace

from gputally.metering.assignment_meter import AssignmentMeter
from gputally.metering.gpu_account import GpuAccount
from gputally.metering.node_snapshot import AssignmentTotals, GpuTotals
from gputally.model.measured.usage_report import AssignmentReport, GpuHour, GpuReport, Hour


def assignment_report(assignment: AssignmentMeter) -> AssignmentReport:
    """A holder, present or ended, with all its hours."""
    held = assignment.held
    return AssignmentReport(
        device=held.part,
        gpu=assignment.gpu,
        namespace=held.namespace,
        pod=held.pod,
        container=held.container,
        resource=held.resource,
        share=assignment.share,
        since_us=assignment.since_us,
        seen_us=assignment.seen_us,
        after_us=assignment.after_us,
        until_us=assignment.until_us,
        pod_uid=held.pod_uid,
        hours=tuple([_hour(start_us, assignment) for start_us in sorted(assignment.hours)]),
    )


def gpu_report(book: GpuAccount) -> GpuReport:
    """A GPU with what was nobody's of it."""
    hours = sorted(book.sums.hours.items())
    return GpuReport(
        uuid=book.gpu.uuid,
        model=book.gpu.model,
        source=book.source.value,
        watermark_us=book.watermark_us,
        lost=book.is_lost,
        hours=tuple(
            [GpuHour(start_us=start_us, unattributed=hour.unattributed, energy=hour.energy) for start_us, hour in hours]
        ),
    )


def watermark_us(books: Iterable[GpuAccount], now_us: int) -> int:
    """Up to when all GPUs that are not lost are accounted; `now_us` if there are none."""
    return min((book.watermark_us for book in books if not book.is_lost), default=now_us)


def gpu_totals(book: GpuAccount) -> GpuTotals:
    """A GPU as it stands, in what changes no more."""
    return GpuTotals(
        uuid=book.gpu.uuid,
        index=book.gpu.index,
        model=book.gpu.model,
        source=book.source.value,
        lost=book.is_lost,
        since_us=book.since_us,
        at_us=book.at_us,
        watermark_us=book.watermark_us,
        states=replace(book.sums.states),
        work=replace(book.sums.work),
    )


def assignment_totals(assignment: AssignmentMeter) -> AssignmentTotals:
    """All that holders of that name did, of whom this is the last."""
    held, tally = assignment.held, assignment.tally
    is_held = assignment.until_us is None
    return AssignmentTotals(
        gpu=assignment.gpu,
        part=held.part,
        namespace=held.namespace,
        pod=held.pod,
        container=held.container,
        resource=held.resource,
        pod_uid=held.pod_uid,
        is_held=is_held,
        share=assignment.share if is_held else 0,
        held=tally.held,
        measured=tally.measured,
        used=tally.used,
        burst=tally.burst,
        memory=tally.memory,
        memory_us=tally.memory_us,
        energy=tally.energy,
        memory_now=tally.memory_now,
    )


def _hour(start_us: int, assignment: AssignmentMeter) -> Hour:
    amounts = assignment.hours[start_us]
    return Hour(
        start_us=start_us,
        from_us=amounts.from_us,
        to_us=amounts.to_us,
        measured=amounts.measured,
        used=amounts.used,
        burst=amounts.burst,
        memory=amounts.memory,
        memory_us=amounts.memory_us,
        energy=amounts.energy,
    )

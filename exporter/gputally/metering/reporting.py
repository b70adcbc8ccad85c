"""Convert running amounts to usage reports and to the snapshot for the agent's `/metrics`."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.metering.gpu_account import GpuAccount
from gputally.metering.sums import AssignmentMeter, HourAmounts, MeasuredWork, States
from gputally.model.usage import AssignmentReport, GpuHour, GpuReport, Hour


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
    """Totals of successive containers of one name on one part; amounts as in `usage.Hour`.

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


WHOLE: Final = 0
"""Reports since this revision have everything."""


def stamp(assignments: Iterable[AssignmentMeter], accounts: Iterable[GpuAccount], revision: int) -> bool:
    """Give all that changed since the last call this `revision`; returns whether anything did."""
    has_changed = False
    for assignment in assignments:
        if not assignment.revision:
            assignment.revision, has_changed = revision, True
            for amounts in assignment.hours.values():
                amounts.revision = amounts.revision or revision
    for account in accounts:
        for hour in account.sums.hours.values():
            if not hour.revision:
                hour.revision, has_changed = revision, True
    return has_changed


def assignment_report(assignment: AssignmentMeter, *, since: int = WHOLE) -> AssignmentReport:
    """The report of a current or ended assignment, with its hours that changed after revision `since`."""
    hours = sorted(assignment.hours.items())
    allocation = assignment.allocation
    return AssignmentReport(
        device=allocation.part,
        gpu=assignment.gpu,
        namespace=allocation.namespace,
        pod=allocation.pod,
        container=allocation.container,
        resource=allocation.resource,
        share=assignment.share,
        since_us=assignment.since_us,
        seen_us=assignment.seen_us,
        after_us=assignment.after_us,
        until_us=assignment.until_us,
        pod_uid=allocation.pod_uid,
        hours=tuple([_hour(start_us, amounts) for start_us, amounts in hours if amounts.revision > since]),
    )


def gpu_report(account: GpuAccount, *, since: int = WHOLE) -> GpuReport:
    """The report of a GPU, with its usage and energy outside any allocation that changed after revision `since`."""
    hours = sorted(account.sums.hours.items())
    return GpuReport(
        uuid=account.gpu.uuid,
        model=account.gpu.model,
        source=account.source.value,
        watermark_us=account.watermark_us,
        lost=account.is_lost,
        hours=tuple(
            [
                GpuHour(start_us=start_us, unattributed=hour.unattributed, energy=hour.energy)
                for start_us, hour in hours
                if hour.revision > since
            ]
        ),
    )


def watermark_us(accounts: Iterable[GpuAccount], now_us: int) -> int:
    """The time up to which all GPUs that are not lost are accounted; `now_us` if there are none."""
    return min((account.watermark_us for account in accounts if not account.is_lost), default=now_us)


def gpu_totals(account: GpuAccount) -> GpuTotals:
    """A copy of the GPU's current totals."""
    return GpuTotals(
        uuid=account.gpu.uuid,
        index=account.gpu.index,
        model=account.gpu.model,
        source=account.source.value,
        lost=account.is_lost,
        since_us=account.since_us,
        at_us=account.at_us,
        watermark_us=account.watermark_us,
        states=replace(account.sums.states),
        work=replace(account.sums.work),
    )


def assignment_totals(assignment: AssignmentMeter) -> AssignmentTotals:
    """Totals of the name whose last assignment this is."""
    allocation, totals = assignment.allocation, assignment.totals
    is_held = assignment.until_us is None
    return AssignmentTotals(
        gpu=assignment.gpu,
        part=allocation.part,
        namespace=allocation.namespace,
        pod=allocation.pod,
        container=allocation.container,
        resource=allocation.resource,
        pod_uid=allocation.pod_uid,
        is_held=is_held,
        share=assignment.share if is_held else 0,
        held=totals.held,
        measured=totals.measured,
        used=totals.used,
        burst=totals.burst,
        memory=totals.memory,
        memory_us=totals.memory_us,
        energy=totals.energy,
        memory_now=totals.memory_now,
    )


def _hour(start_us: int, amounts: HourAmounts) -> Hour:
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

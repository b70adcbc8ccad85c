"""Accounting of all GPUs of one node: from driver readings and kubelet assignments to usage reports and metrics."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gputally.metering.gpu_account import GpuAccount
from gputally.metering.reporting import (
    WHOLE,
    DeviceSnapshot,
    assignment_report,
    assignment_totals,
    gpu_report,
    gpu_totals,
    stamp,
    watermark_us,
)
from gputally.metering.sums import AssignmentMeter, AssignmentName, assignment_name
from gputally.metering.timeline import Timeline
from gputally.model.devices import PartAllocations, Reading
from gputally.model.rules import MigBasis
from gputally.model.units import US_PER_HOUR, US_PER_SECOND
from gputally.model.usage import MIN_JOURNAL_US, VERSION, UsageCursor, UsageReport

EXPORT_US: Final = MIN_JOURNAL_US
"""How long `/metrics` exports an ended assignment, so that each Prometheus replica scrapes its final values."""
JOURNAL_US: Final = 6 * US_PER_HOUR
VALID_US: Final = 10 * US_PER_SECOND
MAX_ASSIGNMENTS: Final = 10_000


class Journal:
    """Keeps each ended assignment for `journal_us` (at least `EXPORT_US`), and each name for `EXPORT_US`."""

    def __init__(self, *, journal_us: int, max_assignments: int) -> None:
        self.journal_us = max(journal_us, EXPORT_US)
        self.dropped = 0
        """Ended assignments dropped early because of `max_assignments`."""
        self.ended: deque[AssignmentMeter] = deque()
        self._max_assignments = max_assignments
        self._names: dict[AssignmentName, AssignmentMeter] = {}
        """The last assignment of each name: ended ones first, in order of their end."""

    def __iter__(self) -> Iterator[AssignmentMeter]:
        """The last assignment of each exported name."""
        return iter(self._names.values())

    def changed(self, started: Iterable[AssignmentMeter], ended: Iterable[AssignmentMeter], *, present: int) -> None:
        """Add started and ended assignments; a new assignment continues the totals of the previous one of its name.

        `present` is the number of current assignments.
        """
        for assignment in ended:
            assignment.totals.until_us = assignment.until_us
            assignment.totals.memory_now = None
            self.ended.append(assignment)
            self._add(assignment)
        for assignment in started:
            before = self._names.get(assignment_name(assignment.allocation))
            assignment.totals = before.totals if before else assignment.totals
            assignment.totals.until_us = None
            self._add(assignment)
        self._limit(present)

    def forget(self, now_us: int, present: Iterable[AssignmentMeter]) -> None:
        """Delete expired assignments, hours and names."""
        before_us = now_us - self.journal_us
        while self.ended and (self.ended[0].until_us or 0) <= before_us:
            self.ended.popleft()
        for assignment in (*self.ended, *present):
            forget_hours(assignment.hours, before_us)
        for name, assignment in tuple(self._names.items()):
            if assignment.until_us is not None and assignment.until_us <= now_us - EXPORT_US:
                del self._names[name]

    def _add(self, assignment: AssignmentMeter) -> None:
        """Make it the last assignment of its name, and the last in order."""
        name = assignment_name(assignment.allocation)
        self._names.pop(name, None)
        self._names[name] = assignment

    def _limit(self, present: int) -> None:
        """Drop the oldest ended assignments over the limit; current assignments stay."""
        while self.ended and len(self.ended) + present > self._max_assignments:
            dropped = self.ended.popleft()
            self.dropped += 1
            name = assignment_name(dropped.allocation)
            if self._names.get(name) is dropped:
                del self._names[name]


def forget_hours(hours: dict[int, Any], before_us: int) -> None:
    """Delete hours that ended at or before `before_us`."""
    for start_us in [start_us for start_us in hours if start_us + US_PER_HOUR <= before_us]:
        del hours[start_us]


class DeviceAccounts:
    """Updated by one writer, in chronological order; all times are µs of one monotonic clock of the node.

    Assignments from the kubelet are valid for `valid_us`, so poll more often. Ended assignments stay in the report for
    `journal_us`; beyond `max_assignments`, the oldest ended assignments are dropped first.
    `mig_basis` is the basis for the weights of the parts in the readings.
    """

    def __init__(
        self,
        *,
        journal_us: int = JOURNAL_US,
        valid_us: int = VALID_US,
        max_assignments: int = MAX_ASSIGNMENTS,
        mig_basis: MigBasis = MigBasis.COMPUTE,
    ) -> None:
        self._mig_basis = mig_basis
        self._timeline = Timeline(valid_us=valid_us)
        self._journal = Journal(journal_us=journal_us, max_assignments=max_assignments)
        self._gpus: dict[str, GpuAccount] = {}
        self._unknown_devices = 0
        self._revision = 1
        self._whole_before = 0
        """Readers of earlier revisions cannot know which ended assignments were dropped, and get a whole report."""
        self._dropped = 0

    def allocated(self, allocations: PartAllocations) -> None:
        """Replace the current allocations. Ignored unless newer than the last ones."""
        if self._timeline.at_us is not None and allocations.at_us <= self._timeline.at_us:
            return
        self._unknown_devices = allocations.unknown
        changes = self._timeline.allocated(allocations)
        if changes.parts:
            self._journal.changed(changes.started, changes.ended, present=len(self._timeline.present))
            self._update_shares()

    def read(self, reading: Reading) -> None:
        """Account one reading of a GPU. The first reading starts the accounting; older readings are ignored."""
        account = self._gpus.get(reading.gpu.uuid)
        if account is None:
            self._gpus[reading.gpu.uuid] = GpuAccount(reading)
            self._update_shares()
        elif account.read(reading, self._timeline):
            self._update_shares()

    def lost(self, gpu_uuid: str, at_us: int) -> None:
        """Mark the GPU as lost at `at_us`, until its next reading. Ignored for an unknown GPU."""
        account = self._gpus.get(gpu_uuid)
        if account is not None:
            account.lost(at_us, self._timeline)

    def report(self, now_us: int, node: str, epoch: str, *, cursor: UsageCursor | None = None) -> UsageReport:
        """The response of `/v1/usage`: ended assignments in order of their end, then current ones.

        With the `cursor` of an earlier report of this epoch, only what changed since; else, everything.
        """
        self._forget(now_us)
        self._stamp()
        since = self._since(cursor, epoch)
        accounts = self._gpus.values()
        ended = [each for each in self._journal.ended if each.revision > since]
        return UsageReport(
            version=VERSION,
            epoch=epoch,
            node=node,
            now_us=now_us,
            watermark_us=watermark_us(accounts, now_us),
            allocations_us=self._timeline.at_us,
            mig_basis=self._mig_basis.value,
            revision=self._revision,
            since=since,
            journal_start_us=max(0, now_us - self._journal.journal_us),
            gpus=tuple([gpu_report(account, since=since) for account in accounts]),
            assignments=tuple(
                [assignment_report(each, since=since) for each in (*ended, *self._timeline.present.values())]
            ),
        )

    def snapshot(self, now_us: int) -> DeviceSnapshot:
        """The current values for `/metrics`."""
        self._forget(now_us)
        return DeviceSnapshot(
            at_us=now_us,
            allocations_us=self._timeline.at_us,
            unknown_devices=self._unknown_devices,
            dropped=self._journal.dropped,
            gpus=tuple(map(gpu_totals, self._gpus.values())),
            assignments=tuple(map(assignment_totals, self._journal)),
        )

    def _update_shares(self) -> None:
        """Set the GPU and share of each current assignment, after allocations or parts changed."""
        for uuid, account in self._gpus.items():
            for slot in account.layout.slots.values():
                period = self._timeline.latest(slot.uuid)
                for assignment, share in zip(period.assignments, period.shares_of(slot.weight), strict=True):
                    assignment.gpu, assignment.share = uuid, share

    def _stamp(self) -> None:
        """Begin a new revision, if anything changed since the last report."""
        assignments = (*self._journal.ended, *self._timeline.present.values())
        has_changed = stamp(assignments, self._gpus.values(), self._revision + 1)
        has_dropped = self._dropped != self._journal.dropped
        self._revision += has_changed or has_dropped
        if has_dropped:
            self._dropped, self._whole_before = self._journal.dropped, self._revision

    def _since(self, cursor: UsageCursor | None, epoch: str) -> int:
        """The revision that the reader has, or WHOLE if it has none of this epoch, or too old a one."""
        is_known = cursor and cursor.epoch == epoch and self._whole_before <= cursor.revision <= self._revision
        return cursor.revision if cursor and is_known else WHOLE

    def _forget(self, now_us: int) -> None:
        self._journal.forget(now_us, self._timeline.present.values())
        for account in self._gpus.values():
            forget_hours(account.sums.hours, now_us - self._journal.journal_us)

"""The books of the GPUs of one node: what the driver and the kubelet tell goes in, what is served comes out."""

from typing import Final

from gputally.metering.gpu_account import GpuAccount
from gputally.metering.journal import Journal, forget_hours
from gputally.metering.node_snapshot import DeviceSnapshot
from gputally.metering.reporting import assignment_report, assignment_totals, gpu_report, gpu_totals, watermark_us
from gputally.metering.timeline import Timeline
from gputally.model.measured.device import PartAllocations, Reading
from gputally.model.measured.usage_report import VERSION, UsageReport
from gputally.model.rules import MigBasis
from gputally.model.units import US_PER_HOUR, US_PER_SECOND

JOURNAL_US: Final = 6 * US_PER_HOUR
BELIEVED_US: Final = 10 * US_PER_SECOND
MOST_HOLDERS: Final = 10_000


class DeviceAccounts:
    """One writer feeds them, in the order of time; all times are µs of one clock of the node that is never set back.

    What the kubelet tells is believed for `believed_us`: it is to be asked more often. What ended stays in the report
    for `journal_us`, and of holders `most_assignments` are kept in all, those that ended longest ago leaving first.
    `mig_basis` is what the parts that are read are weighed by.
    """

    def __init__(
        self,
        *,
        journal_us: int = JOURNAL_US,
        believed_us: int = BELIEVED_US,
        most_assignments: int = MOST_HOLDERS,
        mig_basis: MigBasis = MigBasis.COMPUTE,
    ) -> None:
        self._mig_basis = mig_basis
        self._journal_us = journal_us
        self._timeline = Timeline(believed_us=believed_us)
        self._journal = Journal(journal_us=journal_us, most=most_assignments)
        self._gpus: dict[str, GpuAccount] = {}
        self._unknown_devices = 0

    def allocated(self, allocations: PartAllocations) -> None:
        """Take in who holds what, all of it; what is not newer than what was told last changes nothing."""
        if self._timeline.at_us is not None and allocations.at_us <= self._timeline.at_us:
            return
        self._unknown_devices = allocations.unknown
        changes = self._timeline.allocated(allocations)
        if changes.parts:
            self._journal.changed(changes.begun, changes.ended, present=len(self._timeline.present))
            self._place()

    def read(self, reading: Reading) -> None:
        """Take in one look at a GPU; the first one begins its books, and one that is not newer changes nothing."""
        book = self._gpus.get(reading.gpu.uuid)
        if book is None:
            self._gpus[reading.gpu.uuid] = GpuAccount(reading)
            self._place()
        elif book.read(reading, self._timeline):
            self._place()

    def lost(self, gpu_uuid: str, at_us: int) -> None:
        """The driver did not reach the GPU at `at_us`; the next reading brings it back. Of an unknown one, nothing."""
        book = self._gpus.get(gpu_uuid)
        if book is not None:
            book.lost(at_us, self._timeline)

    def report(self, now_us: int, node: str, epoch: str) -> UsageReport:
        """The answer of `/v1/usage`: those that ended first, in that order."""
        self._forget(now_us)
        books = self._gpus.values()
        return UsageReport(
            version=VERSION,
            epoch=epoch,
            node=node,
            now_us=now_us,
            watermark_us=watermark_us(books, now_us),
            allocations_us=self._timeline.at_us,
            mig_basis=self._mig_basis.value,
            gpus=tuple([gpu_report(book) for book in books]),
            assignments=tuple(
                [assignment_report(each) for each in (*self._journal.ended, *self._timeline.present.values())]
            ),
        )

    def snapshot(self, now_us: int) -> DeviceSnapshot:
        """All that `/metrics` tells."""
        self._forget(now_us)
        return DeviceSnapshot(
            at_us=now_us,
            allocations_us=self._timeline.at_us,
            unknown_devices=self._unknown_devices,
            dropped=self._journal.dropped,
            gpus=tuple(map(gpu_totals, self._gpus.values())),
            assignments=tuple(map(assignment_totals, self._journal)),
        )

    def _place(self) -> None:
        """Holders or parts changed: who holds a part that is there holds a share of its GPU."""
        for uuid, book in self._gpus.items():
            for slot in book.layout.slots.values():
                stretch = self._timeline.latest(slot.uuid)
                for assignment, share in zip(stretch.assignments, stretch.shares_of(slot.weight), strict=True):
                    assignment.gpu, assignment.share = uuid, share

    def _forget(self, now_us: int) -> None:
        self._journal.forget(now_us, self._timeline.present.values())
        for book in self._gpus.values():
            forget_hours(book.sums.hours, now_us - self._journal_us)

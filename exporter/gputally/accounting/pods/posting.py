"""Posts allocations to the totals: only the difference between two states of a record."""

from bisect import bisect_left

from gputally.accounting.facts.segments import held
from gputally.accounting.jobs.jobs import Jobs
from gputally.accounting.totals.total import Total
from gputally.accounting.totals.totals import Totals
from gputally.accounting.wait_book.wait_book import WaitBook
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_SECOND

SCHEDULING_BOUNDS_S = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
"""Upper bounds (s) of the time-to-schedule histogram: page-level delays finely, queueing for hours coarsely."""
BEYOND = "+Inf"
_BOUNDS = (*map(str, SCHEDULING_BOUNDS_S), BEYOND)


class Posting:
    """Keeps the totals equal to the sum over all posted records."""

    def __init__(self, totals: Totals, jobs: Jobs, waits: WaitBook) -> None:
        self._totals = totals
        self.jobs = jobs
        self._waits = waits

    def post(self, before: PodRecord | None, after: PodRecord, *, kept: int, at_us: int) -> PodRecord:
        """Replace `before` by `after` in the totals; the first `kept` segments of both are equal.

        Returns `after`, with how it counts as a job.
        """
        self._totals.allocate(before.segments[kept:] if before else (), after.segments[kept:], at_us=at_us)
        if before is None or before.scheduled_us is None:
            self._scheduled(after, at_us=at_us)
            self._waits.bound(after, at_us=at_us)
        self._gap(before, after, at_us=at_us)
        return self.jobs.post(before, after, kept=kept, at_us=at_us)

    def _scheduled(self, record: PodRecord, *, at_us: int) -> None:
        """Count the time from creation to binding, once, for pods bound since the accounting start."""
        if record.scheduled_us is None or record.scheduled_us < self._totals.accounting_start_us:
            return
        waited_us = max(0, record.scheduled_us - record.created_us)
        tier = record.terms[-1].labels[0]
        bound = _BOUNDS[bisect_left(SCHEDULING_BOUNDS_S, -(-waited_us // US_PER_SECOND))]  # seconds, rounded up
        self._totals.count(Total.SCHEDULED, (tier, bound), 1, at_us=at_us)
        self._totals.count(Total.SCHEDULING_TIME, (tier,), waited_us, at_us=at_us)

    def _gap(self, before: PodRecord | None, after: PodRecord, *, at_us: int) -> None:
        """Post the part of an observation gap that is not charged."""
        if before and (before.gap, before.limited) == (after.gap, after.limited):
            return
        for record, sign in ((before, -1), (after, 1)):
            if record and record.gap and record.terms:
                span = (record.gap.from_us, record.gap.to_us)
                quantity = sum(quantity for _, quantity in held(record, record.terms[-1]))
                self._totals.accrue(Total.UNOBSERVED, record.terms[-1].labels, sign * quantity, span, at_us=at_us)

"""Ended assignments, kept long enough for every scraper and aggregator to receive their final amounts."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gputally.metering.assignment_meter import AssignmentMeter, AssignmentName, assignment_name
from gputally.model.units import US_PER_HOUR, US_PER_SECOND

EXPORT_US: Final = 600 * US_PER_SECOND
"""How long `/metrics` exports an ended assignment, so that each Prometheus replica scrapes its final values."""


class Journal:
    """Keeps each ended assignment for `journal_us` (at least `EXPORT_US`), and each name for `EXPORT_US`."""

    def __init__(self, *, journal_us: int, max_assignments: int) -> None:
        self.dropped = 0
        """Ended assignments dropped early because of `max_assignments`."""
        self.ended: deque[AssignmentMeter] = deque()
        self._journal_us = max(journal_us, EXPORT_US)
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
        before_us = now_us - self._journal_us
        while self.ended and (self.ended[0].until_us or 0) <= before_us:
            self.ended.popleft()
        for assignment in (*self.ended, *present):
            if len(assignment.hours) > 1:
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

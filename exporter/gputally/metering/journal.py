"""Holders that ended: kept until every reader has seen the last of them, and not for ever."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gputally.metering.assignment_meter import AssignmentMeter, Name, name_of
from gputally.model.units import US_PER_HOUR, US_PER_SECOND

SHOWN_US: Final = 600 * US_PER_SECOND
"""For how long what ended is exported: every scraper shall see the last of it, of a pair that scrapes both."""


class Journal:
    """Of holders that ended: each for `journal_us`, at least ten minutes, and each name for ten."""

    def __init__(self, *, journal_us: int, most: int) -> None:
        self.dropped = 0
        """Holders left out early because there were too many."""
        self.ended: deque[AssignmentMeter] = deque()
        self._journal_us = max(journal_us, SHOWN_US)
        self._most = most
        self._names: dict[Name, AssignmentMeter] = {}
        """The last holder of each name, those that ended first in the order of their end."""

    def __iter__(self) -> Iterator[AssignmentMeter]:
        """The last holder of each name that is exported."""
        return iter(self._names.values())

    def changed(self, begun: Iterable[AssignmentMeter], ended: Iterable[AssignmentMeter], *, present: int) -> None:
        """Some began and some ended, and so many are `present`; who has the name of another goes on with its tally."""
        for assignment in ended:
            assignment.tally.until_us = assignment.until_us
            assignment.tally.memory_now = None
            self.ended.append(assignment)
            self._put(assignment)
        for assignment in begun:
            before = self._names.get(name_of(assignment.held))
            assignment.tally = before.tally if before else assignment.tally
            assignment.tally.until_us = None
            self._put(assignment)
        self._drop(present)

    def forget(self, now_us: int, present: Iterable[AssignmentMeter]) -> None:
        """Leave what is too old."""
        before_us = now_us - self._journal_us
        while self.ended and (self.ended[0].until_us or 0) <= before_us:
            self.ended.popleft()
        for assignment in (*self.ended, *present):
            if len(assignment.hours) > 1:
                forget_hours(assignment.hours, before_us)
        for name, assignment in tuple(self._names.items()):
            if assignment.until_us is not None and assignment.until_us <= now_us - SHOWN_US:
                del self._names[name]

    def _put(self, assignment: AssignmentMeter) -> None:
        """As the last one of its name, behind all others."""
        name = name_of(assignment.held)
        self._names.pop(name, None)
        self._names[name] = assignment

    def _drop(self, present: int) -> None:
        """The oldest that ended go first; who is present stays."""
        while self.ended and len(self.ended) + present > self._most:
            dropped = self.ended.popleft()
            self.dropped += 1
            name = name_of(dropped.held)
            if self._names.get(name) is dropped:
                del self._names[name]


def forget_hours(hours: dict[int, Any], before_us: int) -> None:
    """Leave the hours that ended by `before_us`."""
    for start_us in [start_us for start_us in hours if start_us + US_PER_HOUR <= before_us]:
        del hours[start_us]

"""Since when a change can have happened without our seeing it.

A change is as old as the bytes that tell of it, and those may have waited: at the server while there was no
connection, or in buffers while we were busy. So a stream is complete up to

- the last bytes that had to be waited for, nothing lying unread before them, if no backlog was being sent then;
- the creation of the last new object it told of, since changes come in the order in which they happen;
- the beginning of the last complete listing.

A backlog is sent from a connection's beginning, and wherever nothing had to be waited for in more than a second; until
a wait was a quiet one, a bookmark was waited for, or an object is told of that is new now. What is less than half a
second old is live: reading takes time, and with what is told so late, too, the API's own timestamps are no finer.
"""

from typing import Final

from gputally.model.units import US_PER_SECOND

LIVE_US: Final = US_PER_SECOND // 2
QUIET_SECONDS: Final = 0.25
"""A backlog is sent without such a pause; a packet lost on the way is sent again sooner."""
ANSWER_SECONDS: Final = 2.0
"""So long a new connection may be silent although a backlog follows."""


class CompletenessTracker:
    """Knows up to when (µs) a stream of changes is complete, through its interruptions. None: nothing was ever seen."""

    def __init__(self, complete_us: int | None = None) -> None:
        self._complete_us = complete_us
        self._caught_up = False
        self._waited = False
        self._quiet_seconds = ANSWER_SECONDS

    def connected(self) -> None:
        """The server begins to send what happened since the version we gave it."""
        self._caught_up = False
        self._quiet_seconds = ANSWER_SECONDS

    def arrived(self, at_us: int, *, waited_seconds: float) -> None:
        """Bytes came, or the end of the response; 0 when they lay ready before they were asked for."""
        self._waited = waited_seconds > 0
        if waited_seconds >= self._quiet_seconds:
            self._caught_up = True
        elif self.since_us(at_us) < at_us:
            self._caught_up = False
        self._quiet_seconds = QUIET_SECONDS
        if self._waited and self._caught_up:
            self._complete_us = at_us

    def bookmarked(self, at_us: int) -> None:
        """The bytes that came last hold a bookmark: all that was due is sent."""
        if self._waited:
            self._caught_up = True
            self._complete_us = at_us

    def created(self, created_us: int, at_us: int) -> None:
        """A change that came at `at_us` tells of a new object and when it was created."""
        self._complete_us = max(self._complete_us or 0, min(created_us, at_us))
        self._caught_up = self._caught_up or at_us - created_us < LIVE_US

    def listed(self, as_of_us: int) -> None:
        """All objects are known as they were at `as_of_us`."""
        self._complete_us = as_of_us

    def since_us(self, at_us: int) -> int:
        """The earliest moment a change that arrives at `at_us` can have happened; `at_us` if it is live."""
        since_us = self.interrupted_since_us(at_us)
        return at_us if since_us is None or at_us - since_us < 2 * LIVE_US else since_us

    def interrupted_since_us(self, at_us: int) -> int | None:
        """The last moment known complete, None if never; earlier by what passes as live, as that may have come late.

        0 where the time of an earlier process, or a server's before its clock was set, lies ahead: it tells nothing.
        """
        if self._complete_us is None:
            return None
        return max(0, min(self._complete_us, at_us) - LIVE_US) if self._complete_us < at_us + LIVE_US else 0

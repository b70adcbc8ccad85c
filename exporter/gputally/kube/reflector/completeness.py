"""The earliest time at which a newly received change can have happened.

The bytes of a change may have waited: at the server while there was no connection, or in buffers while the process was
busy. So a stream is complete up to the latest of

- the last bytes that the reader waited for, with nothing unread before them and no backlog in progress;
- the creation of the last new object, since changes arrive in the order in which they happen;
- the start of the last complete list.

A backlog may be in progress after a new connection, and after more than a second of reads that did not wait. It ends
with a long wait, a bookmark that the reader waited for, or an object that was created just now. Changes less than half
a second old count as live: reading takes time, and the API's own timestamps are no finer.
"""

from typing import Final

from gputally.model.units import US_PER_SECOND

LIVE_US: Final = US_PER_SECOND // 2
QUIET_SECONDS: Final = 0.25
"""A backlog has no pause this long; lost packets are retransmitted sooner."""
ANSWER_SECONDS: Final = 2.0
"""How long a new connection may be silent before a backlog."""


class CompletenessTracker:
    """Tracks up to when (µs) a stream of changes is complete, across interruptions. None: nothing was ever received."""

    def __init__(self, complete_us: int | None = None) -> None:
        self._complete_us = complete_us
        self._caught_up = False
        self._waited = False
        self._quiet_seconds = ANSWER_SECONDS

    def connected(self) -> None:
        """The server starts to send changes since the requested version."""
        self._caught_up = False
        self._quiet_seconds = ANSWER_SECONDS

    def arrived(self, at_us: int, *, waited_seconds: float) -> None:
        """Bytes, or the end of the response, arrived; `waited_seconds` is 0 if they were already buffered."""
        self._waited = waited_seconds > 0
        if waited_seconds >= self._quiet_seconds:
            self._caught_up = True
        elif self.since_us(at_us) < at_us:
            self._caught_up = False
        self._quiet_seconds = QUIET_SECONDS
        if self._waited and self._caught_up:
            self._complete_us = at_us

    def bookmarked(self, at_us: int) -> None:
        """The last bytes contain a bookmark: the server has sent all pending changes."""
        if self._waited:
            self._caught_up = True
            self._complete_us = at_us

    def created(self, created_us: int, at_us: int) -> None:
        """A change received at `at_us` reports a new object that was created at `created_us`."""
        self._complete_us = max(self._complete_us or 0, min(created_us, at_us))
        self._caught_up = self._caught_up or at_us - created_us < LIVE_US

    def listed(self, as_of_us: int) -> None:
        """A list is complete as of `as_of_us`."""
        self._complete_us = as_of_us

    def since_us(self, at_us: int) -> int:
        """The earliest time at which a change received at `at_us` can have happened; `at_us` if it is live."""
        since_us = self.interrupted_since_us(at_us)
        return at_us if since_us is None or at_us - since_us < 2 * LIVE_US else since_us

    def interrupted_since_us(self, at_us: int) -> int | None:
        """The time up to which the stream is complete, minus the tolerance for live changes; None if never.

        0 if that time is in the future, from an earlier process or a wrong server clock, and so has no meaning.
        """
        if self._complete_us is None:
            return None
        return max(0, min(self._complete_us, at_us) - LIVE_US) if self._complete_us < at_us + LIVE_US else 0

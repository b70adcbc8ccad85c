"""Since when a change can have happened without our seeing it."""

from typing import Final

from gputally.model.units import US_PER_SECOND

CATCH_UP_US: Final = 2 * US_PER_SECOND
"""After connecting the server first sends what was missed; without a bookmark this long is allowed for it."""


class Continuity:
    """Knows up to when (µs) a stream of changes is complete, through its interruptions.

    On a live stream a change is seen as it happens. Until an interrupted stream has caught up, a change
    can be as old as the last moment at which the stream was known to be complete.
    """

    def __init__(self, complete_us: int | None = None) -> None:
        self.complete_us = complete_us
        self._live_from_us: int | None = None

    def connected(self, now_us: int) -> None:
        """The server begins to send what happened since the version we gave it."""
        self._live_from_us = now_us + CATCH_UP_US

    def interrupted(self) -> None:
        """The connection is gone, or a listing begins: nothing is live until `connected` or `caught_up`."""
        self._live_from_us = None

    def caught_up(self, at_us: int) -> None:
        """A bookmark came: everything before it has been sent."""
        self._live_from_us = at_us

    def received(self, at_us: int) -> None:
        """Bytes came; on a live stream this makes it complete up to now."""
        if self._is_live(at_us):
            self.complete_us = at_us

    def listed(self, as_of_us: int) -> None:
        """All objects are known as they were at `as_of_us`."""
        self.complete_us = as_of_us

    def since_us(self, at_us: int) -> int:
        """The earliest moment a change that arrives at `at_us` can have happened; `at_us` if nothing came before."""
        since_us = self.interrupted_since_us(at_us)
        return at_us if since_us is None or self._is_live(at_us) else since_us

    def interrupted_since_us(self, at_us: int) -> int | None:
        """The last moment known complete, None if never; not after `at_us`, should the clock have stepped back."""
        return None if self.complete_us is None else min(self.complete_us, at_us)

    def _is_live(self, at_us: int) -> bool:
        return self._live_from_us is not None and at_us >= self._live_from_us

"""Recently deleted pods, for watch events that arrive late."""

from gputally.model.disruptions import Preemptor
from gputally.model.units import US_PER_SECOND

KEEP_US = 600 * US_PER_SECOND
"""How late an event about a deleted pod may arrive."""


class RecentlyDeleted:
    """Recently deleted pods by UID, oldest first, as possible preemptors."""

    def __init__(self) -> None:
        self._deleted: dict[str, tuple[int, Preemptor]] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._deleted

    def add(self, preemptor: Preemptor, *, at_us: int) -> None:
        """Add a deleted pod."""
        self._deleted[preemptor.uid] = (at_us, preemptor)

    def get(self, uid: str) -> Preemptor | None:
        """The deleted pod; None if it still exists or was deleted too long ago."""
        return self._deleted[uid][1] if uid in self._deleted else None

    def forget(self, now_us: int) -> None:
        """Drop pods about which no event can arrive any more."""
        while self._deleted and next(iter(self._deleted.values()))[0] < now_us - KEEP_US:
            del self._deleted[next(iter(self._deleted))]

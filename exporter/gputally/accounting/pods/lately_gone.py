"""Pods deleted lately, for news of them that comes late."""

from gputally.model.preemption import Preemptor
from gputally.model.units import US_PER_SECOND

KEEP_US = 600 * US_PER_SECOND
"""How long news of a deleted pod may come late."""


class LatelyGone:
    """By UID, in the order of their going, as the preemptors they may turn out to be."""

    def __init__(self) -> None:
        self._gone: dict[str, tuple[int, Preemptor]] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._gone

    def add(self, preemptor: Preemptor, *, at_us: int) -> None:
        """A pod was deleted."""
        self._gone[preemptor.uid] = (at_us, preemptor)

    def get(self, uid: str) -> Preemptor | None:
        """The pod, unless it exists or was deleted too long ago."""
        return self._gone[uid][1] if uid in self._gone else None

    def forget(self, now_us: int) -> None:
        """Forget those of whom no news can come any more."""
        while self._gone and next(iter(self._gone.values()))[0] < now_us - KEEP_US:
            del self._gone[next(iter(self._gone))]

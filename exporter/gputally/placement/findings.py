"""Pods that wait while others run that should not precede them."""

from gputally.model.placement.finding import Finding
from gputally.model.placement.needs import Needs
from gputally.model.placement.verdict import Verdict
from gputally.placement.room import Room


def findings(needs: Needs, room: Room, verdict: Verdict, *, since_us: int | None = None) -> tuple[Finding, ...]:
    """What is wrong with the order of priorities for a class of pods that wait with this verdict since `since_us`."""
    raise NotImplementedError

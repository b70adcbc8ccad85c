"""Why a pod waits."""

from gputally.model.placement.needs import Needs
from gputally.model.placement.situation import Situation
from gputally.model.placement.verdict import Verdict
from gputally.placement.room import Room

NOWHERE = Situation()


def judged(needs: Needs, room: Room, situation: Situation = NOWHERE) -> Verdict:
    """The verdict on a waiting pod, with a minimal set of obstacles; see `Reason` and `Verdict`."""
    raise NotImplementedError

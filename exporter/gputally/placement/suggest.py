"""What would help a waiting pod."""

from collections.abc import Sequence

from gputally.model.placement.advice import PriorityChoice, Suggestion
from gputally.model.placement.needs import Needs
from gputally.model.placement.situation import Situation
from gputally.model.placement.verdict import Verdict
from gputally.placement.room import Room


def suggestions(
    verdict: Verdict, needs: Needs, room: Room, situation: Situation, *, classes: Sequence[PriorityChoice] = ()
) -> tuple[Suggestion, ...]:
    """Changes that lead to a binding, each judged again by the same model; the simplest first.

    `classes` are the PriorityClasses that the pod could use.
    """
    raise NotImplementedError

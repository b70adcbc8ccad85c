"""What pods need, and what they take once they are bound."""

from gputally.model.objects.placeable_pod import PlaceablePod
from gputally.model.placement.needs import Needs, Taken
from gputally.model.rules import Rules


def needs_of(pod: PlaceablePod, rules: Rules) -> Needs:
    """What decides where `pod` may run. Raises: MalformedObject for an invalid quantity."""
    raise NotImplementedError


def taken_of(pod: PlaceablePod, *, is_serving: bool = False) -> Taken:
    """What the bound `pod` takes from its node. Raises: MalformedObject for an invalid quantity."""
    raise NotImplementedError

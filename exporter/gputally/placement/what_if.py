"""What would happen to pods that do not exist yet."""

from collections.abc import Collection

from gputally.model.placement.advice import WhatIf
from gputally.model.placement.needs import Needs
from gputally.placement.room import Room


def what_if(needs: Needs, room: Room, *, count: int = 1, protected: Collection[str] = ()) -> WhatIf:
    """What would happen to `count` identical pods that are created now, one after the other."""
    raise NotImplementedError

"""What was found out about needs and nodes of one room; all of it together is bounded."""

from itertools import count
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Struct

from gputally.model.placement.needs import Needs
from gputally.model.placement.verdict import Obstacle

Exclusions = tuple[Obstacle, ...]
"""What keeps a pod away from all nodes with the same signature."""
MOST_KEPT: Final = 32 * 2**20
"""About how many bytes are kept."""
_ENTRY: Final = 128
"""Bytes of an entry, besides the text of its obstacles."""


class Known(Struct):
    """What is known for some needs, by the number of the group; `large` with the version of its offers."""

    exclusions: dict[int, Exclusions]
    large: dict[int, tuple[int, int]]


class Answers:
    """Answers by needs, which are dropped with the last pod that has these needs.

    `looked_at` counts the nodes, and the groups of nodes, that were looked at: a measure of work without a clock.
    """

    def __init__(self) -> None:
        self.looked_at = 0
        self.kept = 0
        """About the bytes that were added since everything was dropped."""
        self._numbers = count(1)
        self._of: WeakKeyDictionary[Needs, Known] = WeakKeyDictionary()

    def __len__(self) -> int:
        return sum(len(each.exclusions) + len(each.large) for each in self._of.values())

    def next_number(self) -> int:
        """The number of another group."""
        return next(self._numbers)

    def of(self, needs: Needs) -> Known:
        """What is known for these needs; whoever adds to it calls `added`."""
        if (found := self._of.get(needs)) is None:
            found = self._of[needs] = Known({}, {})
        return found

    def added(self, obstacles: Exclusions = ()) -> None:
        """An answer was added. If there are too many, all are dropped, and found out again when they are needed."""
        self.kept += _ENTRY + sum(_ENTRY + len(each.what) for each in obstacles)
        if self.kept > MOST_KEPT:
            self.kept = 0
            for each in self._of.values():
                each.exclusions.clear()
                each.large.clear()

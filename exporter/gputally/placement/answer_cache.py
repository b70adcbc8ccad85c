"""A cache of answers about needs and nodes of one room, with a bounded size."""

from itertools import count
from typing import Final
from weakref import WeakKeyDictionary, WeakValueDictionary

from msgspec import Struct

from gputally.model.needs import Amounts, Needs
from gputally.model.verdicts import Obstacle

Exclusions = tuple[Obstacle, ...]
"""What keeps a pod away from all nodes with the same signature."""
MOST_KEPT: Final = 32 * 2**20
"""About how many bytes are kept."""
_ENTRY: Final = 128
"""About the bytes of an answer and of an obstacle, besides text."""
_UID: Final = 48
_LOOKS: Final = 16
"""To compare the pods on a node takes as long as to look at so many nodes."""


class Large(Struct, weakref=True, eq=False):
    """How many nodes of a group, by its number, are large enough for some amounts; with the version of its offers."""

    of: dict[int, tuple[int, int]]


class AboutNeeds(Struct):
    """What is known for some needs, by the number of the group. Needs with equal amounts share what is `large`."""

    exclusions: dict[int, Exclusions]
    large: Large
    kept: int = 0
    """About its bytes."""


class Answers:
    """Answers for needs, which are dropped with the last pod that has these needs, and answers about nodes.

    `looked_at` counts the nodes, and the groups of nodes, that were looked at: a measure of work without a clock.
    """

    def __init__(self) -> None:
        self.looked_at = 0
        self._kept = 0
        """About the bytes of all answers, and of those that are gone since this was last counted."""
        self._numbers = count(1)
        self._of: WeakKeyDictionary[Needs, AboutNeeds] = WeakKeyDictionary()
        self._large: WeakValueDictionary[Amounts, Large] = WeakValueDictionary()
        self._last: tuple[Needs, AboutNeeds] | None = None
        """Asked for once for each group."""
        self._memos: dict[str, NodeMemo] = {}

    @property
    def kept(self) -> int:
        """About the bytes of all answers."""
        return sum(each.kept for each in self._of.values()) + sum(each.kept for each in self._memos.values())

    def next_number(self) -> int:
        """The number of another group."""
        return next(self._numbers)

    def of(self, needs: Needs) -> AboutNeeds:
        """What is known for these needs; whoever adds to it calls `added`."""
        if self._last is None or self._last[0] is not needs:
            if (found := self._of.get(needs)) is None:
                found = self._of[needs] = AboutNeeds({}, self._large.setdefault(needs.amounts, Large({})))
            self._last = needs, found
        return self._last[1]

    def added(self, known: AboutNeeds, obstacles: Exclusions = ()) -> None:
        """An answer was added for needs."""
        size = _size(obstacles)
        known.kept += size
        self._grow(size)

    def about_node(self, name: str, memo: "NodeMemo", answer: object) -> None:
        """An answer was found about a node."""
        size = _size(answer)
        memo.kept += size
        self._memos[name] = memo
        self.looked_at += _LOOKS
        self._grow(size)

    def node_changed(self, name: str) -> None:
        """The answers about a node are gone."""
        if memo := self._memos.pop(name, None):
            self._kept -= memo.kept

    def _grow(self, size: int) -> None:
        """If there are too many answers, drop all: they are found out again when they are needed."""
        self._kept += size
        if self._kept > MOST_KEPT:
            self._kept = self.kept
            if self._kept > MOST_KEPT // 2:
                self._drop_all()

    def _drop_all(self) -> None:
        for known in self._of.values():
            known.exclusions.clear()
            known.large.of.clear()
            known.kept = 0
        for memo in self._memos.values():
            memo.clear()
            memo.kept = 0
        self._memos.clear()
        self._kept = 0


class NodeMemo(dict[object, object]):
    """Answers about a node, valid until it changes."""

    __slots__ = ("_answers", "_name", "kept")

    def __init__(self, name: str, answers: Answers) -> None:
        super().__init__()
        self.kept = 0
        """About its bytes."""
        self._name = name
        self._answers = answers

    def __setitem__(self, key: object, answer: object) -> None:
        super().__setitem__(key, answer)
        self._answers.about_node(self._name, self, answer)

    def forget(self) -> None:
        """The node has changed."""
        if self:
            self.clear()
            self._answers.node_changed(self._name)
            self.kept = 0


def _size(answer: object) -> int:
    """About its bytes; long answers are those that list obstacles."""
    size = _ENTRY
    for each in answer if isinstance(answer, tuple) else ():
        if isinstance(each, Obstacle):
            size += _ENTRY + len(each.what) + _UID * len(each.pods)
    return size

"""Waiting pods that others should not precede: looked for class by class, since each takes a look at all its nodes."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from gputally.accounting.waiting.verdicts import Key, WaitClass
from gputally.model.placement.priority_finding import FindingKind
from gputally.placement.findings import findings
from gputally.placement.room import Room

MOST_CLASSES: Final = 4
"""Classes that are looked at in one step."""
ClassFindings = tuple[tuple[FindingKind, int], ...]
"""What was found of a class, with the GPUs of the pods that should not precede it."""


class RankFindings:
    """What was found of each class when it was last looked at."""

    def __init__(self, room: Room, classes: Mapping[Key, WaitClass]) -> None:
        self._room = room
        self._classes = classes
        self._due: list[Key] = []
        self._found: dict[Key, ClassFindings] = {}

    def step(self, since_us: Callable[[str], int]) -> None:
        """Look at some classes, each in its turn; `since_us` is when a pod began to wait."""
        if not self._due:
            self._due = list(self._classes)
            self._found = {key: found for key, found in self._found.items() if key in self._classes}
        for key in self._due[-MOST_CLASSES:]:
            if each := self._classes.get(key):
                oldest_us = min(map(since_us, each.members))
                found = findings(each.needs, self._room, each.verdict, since_us=oldest_us)
                self._found[key] = tuple((finding.kind, finding.gpus) for finding in found)
        del self._due[-MOST_CLASSES:]

    def pods(self, tier_of: Callable[[str], str | None]) -> Counter[tuple[str, str]]:
        """Pending pods by tier and kind of finding; `tier_of` is None for a pod that does not wait."""
        found = Counter[tuple[str, str]]()
        for members, kinds in self._classes_found():
            tiers = Counter(filter(None, map(tier_of, members)))
            found.update({(tier, kind.value): count for tier, count in tiers.items() for kind, _ in kinds})
        return found

    def by_pod(self) -> dict[str, ClassFindings]:
        """The findings about each pod that has any, by UID."""
        return {uid: found for members, found in self._classes_found() for uid in members}

    def _classes_found(self) -> Iterator[tuple[Mapping[str, str], ClassFindings]]:
        """The members of the classes of which something was found, with that."""
        for key, found in self._found.items():
            if found and (each := self._classes.get(key)):
                yield each.members, found

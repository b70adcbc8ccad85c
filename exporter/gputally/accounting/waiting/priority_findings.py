"""Finds waiting pods that others should not precede: class by class, since each takes a look at all its nodes."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, NamedTuple

from gputally.accounting.waiting.verdicts import EquivalenceClass, Key
from gputally.model.verdicts import FindingKind
from gputally.placement.priority_findings import findings
from gputally.placement.room import Room

MOST_CLASSES: Final = 4
"""Classes that are looked at in one step."""
ClassFindings = tuple[tuple[FindingKind, int], ...]
"""What was found of a class, with the GPUs of the pods that should not precede it."""


class _FoundOfClass(NamedTuple):
    """The findings of a class; that of starvation is only one of pods that began to wait before `latest_us`."""

    findings: ClassFindings
    latest_us: int | None


class RankFindings:
    """What was found of each class when it was last looked at; `since_us` is when a pod began to wait."""

    def __init__(self, room: Room, classes: Mapping[Key, EquivalenceClass], since_us: Callable[[str], int]) -> None:
        self._room = room
        self._classes = classes
        self._since_us = since_us
        self._due: list[Key] = []
        self._found: dict[Key, _FoundOfClass] = {}

    def step(self) -> None:
        """Look at some classes, each in its turn."""
        if not self._due:
            self._due = list(self._classes)
            self._found = {key: found for key, found in self._found.items() if key in self._classes}
        for key in self._due[-MOST_CLASSES:]:
            if each := self._classes.get(key):
                oldest_us = min(map(self._since_us, each.members))
                found = findings(each.needs, self._room, each.verdict, since_us=oldest_us)
                latest_us = next((finding.latest_us for finding in found if finding.latest_us is not None), None)
                self._found[key] = _FoundOfClass(tuple((finding.kind, finding.gpus) for finding in found), latest_us)
        del self._due[-MOST_CLASSES:]

    def pods(self, tier_of: Callable[[str], str | None]) -> Counter[tuple[str, str]]:
        """Pending pods by tier and kind of finding; `tier_of` is None for a pod that does not wait."""
        found = Counter[tuple[str, str]]()
        for pods, kinds in self._alike():
            tiers = Counter(filter(None, map(tier_of, pods)))
            found.update({(tier, kind.value): count for tier, count in tiers.items() for kind, _ in kinds})
        return found

    def by_pod(self) -> dict[str, ClassFindings]:
        """The findings about each pod that has any, by UID."""
        return {uid: found for pods, found in self._alike() if found for uid in pods}

    def _alike(self) -> Iterator[tuple[Collection[str], ClassFindings]]:
        """The pods of the classes of which something was found, with that; later ones of a class are not starved."""
        for key, (found, latest_us) in self._found.items():
            each = self._classes.get(key) if found else None
            members = each.members if each else {}
            if latest_us is None:
                yield members, found
                continue
            starved = {uid for uid in members if self._since_us(uid) < latest_us}
            yield starved, found
            yield members.keys() - starved, tuple(pair for pair in found if pair[0] is not FindingKind.STARVATION)

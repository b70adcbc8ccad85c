"""Who held which part when, from what the kubelet told at each poll."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gputally.metering.assignment_meter import AssignmentMeter, Name, hour_of, name_of
from gputally.metering.attribution import shares
from gputally.model.measured.device import PartAllocation, PartAllocations
from gputally.model.units import US_PER_HOUR, US_PER_SECOND

KEPT_US: Final = 600 * US_PER_SECOND
"""For how long it is remembered who held what, for utilisation that is told late."""


class Stretch(Struct, eq=False):
    """From `from_us` on a part had the same holders; `held` is what the kubelet said of each.

    It is `offered` unless the device plugin took it back.
    """

    from_us: int
    assignments: tuple[AssignmentMeter, ...] = ()
    held: tuple[PartAllocation, ...] = ()
    offered: bool = True
    weight: int | None = None
    shares: tuple[int, ...] = ()

    def shares_of(self, weight: int) -> tuple[int, ...]:
        """The µGPU that each of its holders has of a part of that weight."""
        if weight != self.weight and self.held:
            self.weight, self.shares = weight, shares(weight, self.held)
        return self.shares


class Piece(NamedTuple):
    """Time within one hour in which a part had the same holders; `stretch` is None where nobody knows them."""

    from_us: int
    to_us: int
    stretch: Stretch | None


class AssignmentChanges(NamedTuple):
    """Who began to hold a part, and who ended; `parts` are those that it matters for."""

    begun: list[AssignmentMeter]
    ended: list[AssignmentMeter]
    parts: set[str]


_NOBODY: Final = Stretch(0)


class Timeline:
    """What a kubelet tells is believed for `believed_us`; then, until it tells again, nobody knows."""

    def __init__(self, *, believed_us: int) -> None:
        self.at_us: int | None = None
        """When the kubelet told last."""
        self.present: dict[Name, AssignmentMeter] = {}
        self._believed_us = believed_us
        self._first_us = 0
        self._gap: list[tuple[int, int]] = []
        self._stretches: dict[str, list[Stretch]] = {}
        self._unhealthy: frozenset[str] = frozenset()

    @property
    def known_until_us(self) -> int:
        """Up to when it is known who holds what, unless the kubelet tells again."""
        return 0 if self.at_us is None else self.at_us + self._believed_us

    def allocated(self, allocations: PartAllocations) -> AssignmentChanges:
        """Take in all there is now; what is not newer than what is known changes nothing."""
        changes = AssignmentChanges([], [], set())
        if self.at_us is not None and allocations.at_us <= self.at_us:
            return changes
        self._look(allocations.at_us)
        held = {
            name_of(each): each for each in sorted(allocations.held, reverse=True)
        }  # a name there twice counts once
        self._compare(held, changes, allocations.at_us)
        changes.parts.update(allocations.unhealthy ^ self._unhealthy)
        self._unhealthy = allocations.unhealthy
        self.at_us = allocations.at_us
        if changes.parts:
            self._begin_stretches(changes.parts, allocations.at_us)
        return changes

    def latest(self, part: str) -> Stretch:
        """Who holds `part` according to the last poll."""
        history = self._stretches.get(part)
        return history[-1] if history else _NOBODY

    def pieces(self, part: str, from_us: int, to_us: int) -> Sequence[Piece]:
        """[from_us, to_us) by holders of `part` and by hour, without gaps."""
        if from_us >= to_us:
            return ()
        history = self._stretches.get(part, ())
        last = history[-1] if history else _NOBODY
        is_plain = last.from_us <= from_us and to_us <= self.known_until_us and to_us <= hour_of(from_us) + US_PER_HOUR
        if is_plain and from_us >= self._known_again_us():
            return (Piece(from_us, to_us, last),)
        cuts = [from_us, *sorted({at for at in self._instants(history, from_us, to_us) if from_us < at < to_us}), to_us]
        return [Piece(*span, self._at(history, span[0])) for span in pairwise(cuts)]

    def _look(self, at_us: int) -> None:
        """The kubelet tells again: note from when on it was not known what it tells of."""
        if self.at_us is None:
            self._first_us = at_us
        elif at_us > self.known_until_us:
            self._gap.append((self.known_until_us, at_us))
        self._first_us = max(self._first_us, at_us - KEPT_US)
        self._gap = [gap for gap in self._gap if gap[1] > self._first_us]

    def _compare(self, held: dict[Name, PartAllocation], changes: AssignmentChanges, at_us: int) -> None:
        for name in [*self.present]:
            if name not in held or _is_another(self.present[name].held, held[name]):
                ended = self.present.pop(name)
                ended.until_us = at_us
                changes.ended.append(ended)
                changes.parts.add(name.part)
        for name in sorted(held.keys() - self.present.keys()):
            assignment = AssignmentMeter(held=held[name], since_us=at_us, seen_us=at_us, after_us=self.at_us)
            self.present[name] = assignment
            changes.begun.append(assignment)
            changes.parts.add(name.part)
        for name, assignment in self.present.items():
            assignment.seen_us = at_us
            if _learn(assignment, held[name]):
                changes.parts.add(name.part)

    def _begin_stretches(self, parts: set[str], at_us: int) -> None:
        assignments: dict[str, list[AssignmentMeter]] = {part: [] for part in sorted(parts)}
        for name in sorted(self.present):
            if name.part in assignments:
                assignments[name.part].append(self.present[name])
        for part, present in assignments.items():
            held = tuple([each.held for each in present])
            stretch = Stretch(at_us, tuple(present), held, offered=part not in self._unhealthy)
            self._stretches.setdefault(part, []).append(stretch)
        self._forget()

    def _forget(self) -> None:
        """Leave what ended before all that is remembered, and parts that nobody held since."""
        for part, history in [*self._stretches.items()]:
            del history[: max(0, _index(history, self._first_us))]
            if history[-1].from_us <= self._first_us and not history[-1].held and history[-1].offered:
                del self._stretches[part]

    def _known_again_us(self) -> int:
        return self._gap[-1][1] if self._gap else self._first_us

    def _instants(self, history: Sequence[Stretch], from_us: int, to_us: int) -> Iterator[int]:
        """Where anything may change."""
        yield from range(hour_of(from_us) + US_PER_HOUR, to_us, US_PER_HOUR)
        yield from (self._first_us, self.known_until_us)
        for gap in self._gap:
            yield from gap
        yield from (stretch.from_us for stretch in history)

    def _at(self, history: Sequence[Stretch], at_us: int) -> Stretch | None:
        if self.at_us is None or not self._first_us <= at_us < self.known_until_us:
            return None
        if any(from_us <= at_us < to_us for from_us, to_us in self._gap):
            return None
        index = _index(history, at_us)
        return history[index] if index >= 0 else _NOBODY


def _index(history: Sequence[Stretch], at_us: int) -> int:
    """Which of them applies at that time; -1 if it lies before all."""
    return bisect_right(history, at_us, key=lambda stretch: stretch.from_us) - 1


def _is_another(was: PartAllocation, held: PartAllocation) -> bool:
    """Whether it is another pod of the same name."""
    return was.pod_uid != held.pod_uid and bool(was.pod_uid and held.pod_uid)


def _learn(assignment: AssignmentMeter, held: PartAllocation) -> bool:
    """Take what the kubelet says now; whether that differs from before. A pod's UID once known stays so."""
    if held == assignment.held:
        return False
    was, assignment.held = assignment.held, replace(held, pod_uid=held.pod_uid or assignment.held.pod_uid)
    return was != assignment.held

"""History of assignments by part, from the kubelet polls."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from gputally.metering.attribution import shares
from gputally.metering.sums import AssignmentMeter, AssignmentName, assignment_name, hour_of
from gputally.model.devices import PartAllocation, PartAllocations
from gputally.model.units import US_PER_HOUR, US_PER_SECOND

HISTORY_US: Final = 600 * US_PER_SECOND
"""How long past assignments are kept, to attribute utilisation that the driver reports late."""


class Period(Struct, eq=False):
    """A period from `from_us` in which the assignments of a part did not change; `allocations` are in the same order.

    The part is `offered` unless the device plugin withdrew it.
    """

    from_us: int
    assignments: tuple[AssignmentMeter, ...] = ()
    allocations: tuple[PartAllocation, ...] = ()
    offered: bool = True
    weight: int | None = None
    shares: tuple[int, ...] = ()

    def shares_of(self, weight: int) -> tuple[int, ...]:
        """The share of each assignment in µGPU, if the part weighs `weight`."""
        if weight != self.weight and self.allocations:
            self.weight, self.shares = weight, shares(weight, self.allocations)
        return self.shares


class Interval(NamedTuple):
    """Time within one hour and one period; `period` is None if the assignments are unknown."""

    from_us: int
    to_us: int
    period: Period | None


class AssignmentChanges(NamedTuple):
    """Started and ended assignments; `parts` are all parts with changes."""

    started: list[AssignmentMeter]
    ended: list[AssignmentMeter]
    parts: set[str]


_UNALLOCATED: Final = Period(0)


class Timeline:
    """Assignments are valid for `valid_us` after a kubelet poll, then unknown until the next poll."""

    def __init__(self, *, valid_us: int) -> None:
        self.at_us: int | None = None
        """Time of the last poll."""
        self.present: dict[AssignmentName, AssignmentMeter] = {}
        self._valid_us = valid_us
        self._history_start_us = 0
        self._gaps: list[tuple[int, int]] = []
        self._periods: dict[str, list[Period]] = {}
        self._unhealthy: frozenset[str] = frozenset()

    @property
    def known_until_us(self) -> int:
        """The time up to which assignments are known without another poll."""
        return 0 if self.at_us is None else self.at_us + self._valid_us

    def allocated(self, allocations: PartAllocations) -> AssignmentChanges:
        """Replace the current allocations. Ignored unless newer than the last ones."""
        changes = AssignmentChanges([], [], set())
        if self.at_us is not None and allocations.at_us <= self.at_us:
            return changes
        self._note_poll(allocations.at_us)
        # duplicate names count once
        held = {assignment_name(each): each for each in sorted(allocations.held, reverse=True)}
        self._update_present(held, changes, allocations.at_us)
        changes.parts.update(allocations.unhealthy ^ self._unhealthy)
        self._unhealthy = allocations.unhealthy
        self.at_us = allocations.at_us
        if changes.parts:
            self._start_periods(changes.parts, allocations.at_us)
        return changes

    def latest(self, part: str) -> Period:
        """The period of `part` since its last change."""
        history = self._periods.get(part)
        return history[-1] if history else _UNALLOCATED

    def intervals(self, part: str, from_us: int, to_us: int) -> Sequence[Interval]:
        """Split [from_us, to_us) by the periods of `part` and by hour, without gaps."""
        if from_us >= to_us:
            return ()
        history = self._periods.get(part, ())
        last = history[-1] if history else _UNALLOCATED
        is_single = last.from_us <= from_us and to_us <= self.known_until_us and to_us <= hour_of(from_us) + US_PER_HOUR
        if is_single and from_us >= self._last_gap_end_us():
            return (Interval(from_us, to_us, last),)
        cuts = [
            from_us,
            *sorted({at for at in self._boundaries(history, from_us, to_us) if from_us < at < to_us}),
            to_us,
        ]
        return [Interval(*span, self._period_at(history, span[0])) for span in pairwise(cuts)]

    def _note_poll(self, at_us: int) -> None:
        """Record an observation gap since the last poll, and forget expired history."""
        if self.at_us is None:
            self._history_start_us = at_us
        elif at_us > self.known_until_us:
            self._gaps.append((self.known_until_us, at_us))
        self._history_start_us = max(self._history_start_us, at_us - HISTORY_US)
        self._gaps = [gap for gap in self._gaps if gap[1] > self._history_start_us]

    def _update_present(
        self, held: dict[AssignmentName, PartAllocation], changes: AssignmentChanges, at_us: int
    ) -> None:
        for name in [*self.present]:
            if name not in held or _is_other_pod(self.present[name].allocation, held[name]):
                ended = self.present.pop(name)
                ended.end(at_us)
                changes.ended.append(ended)
                changes.parts.add(name.part)
        for name in sorted(held.keys() - self.present.keys()):
            assignment = AssignmentMeter(allocation=held[name], since_us=at_us, seen_us=at_us, after_us=self.at_us)
            self.present[name] = assignment
            changes.started.append(assignment)
            changes.parts.add(name.part)
        for name, assignment in self.present.items():
            assignment.seen_us = at_us
            if _update(assignment, held[name]):
                changes.parts.add(name.part)

    def _start_periods(self, parts: set[str], at_us: int) -> None:
        assignments: dict[str, list[AssignmentMeter]] = {part: [] for part in sorted(parts)}
        for name in sorted(self.present):
            if name.part in assignments:
                assignments[name.part].append(self.present[name])
        for part, present in assignments.items():
            allocations = tuple([each.allocation for each in present])
            period = Period(at_us, tuple(present), allocations, offered=part not in self._unhealthy)
            self._periods.setdefault(part, []).append(period)
        self._delete_expired()

    def _delete_expired(self) -> None:
        """Delete periods before the kept history, and parts without allocations since."""
        for part, history in [*self._periods.items()]:
            del history[: max(0, _index(history, self._history_start_us))]
            if history[-1].from_us <= self._history_start_us and not history[-1].allocations and history[-1].offered:
                del self._periods[part]

    def _last_gap_end_us(self) -> int:
        return self._gaps[-1][1] if self._gaps else self._history_start_us

    def _boundaries(self, history: Sequence[Period], from_us: int, to_us: int) -> Iterator[int]:
        """Times at which the period or the hour may change."""
        yield from range(hour_of(from_us) + US_PER_HOUR, to_us, US_PER_HOUR)
        yield from (self._history_start_us, self.known_until_us)
        for gap in self._gaps:
            yield from gap
        yield from (period.from_us for period in history)

    def _period_at(self, history: Sequence[Period], at_us: int) -> Period | None:
        if self.at_us is None or not self._history_start_us <= at_us < self.known_until_us:
            return None
        if any(from_us <= at_us < to_us for from_us, to_us in self._gaps):
            return None
        index = _index(history, at_us)
        return history[index] if index >= 0 else _UNALLOCATED


def _index(history: Sequence[Period], at_us: int) -> int:
    """Index of the period at `at_us`; -1 if it is before all periods."""
    return bisect_right(history, at_us, key=lambda period: period.from_us) - 1


def _is_other_pod(old: PartAllocation, new: PartAllocation) -> bool:
    """Whether the pod was replaced by another pod of the same name."""
    return old.pod_uid != new.pod_uid and bool(old.pod_uid and new.pod_uid)


def _update(assignment: AssignmentMeter, new: PartAllocation) -> bool:
    """Set the allocation, but keep a known pod UID; return whether anything changed."""
    old = assignment.allocation
    if new == old:
        return False
    assignment.allocation = replace(new, pod_uid=new.pod_uid or old.pod_uid)
    return old != assignment.allocation

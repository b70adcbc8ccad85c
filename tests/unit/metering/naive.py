"""The same books once more, second by second, in plain loops and fractions, from all that was ever told."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from gputally.model.devices import Part, PartAllocation, PartAllocations, Reading
from gputally.model.units import GPU, US_PER_SECOND

BELIEVED_S = 10
KEPT_S = 600
LATE_S = 10

AssignmentRecord = tuple[str, str]
"""Part and pod."""


def naive_shares(weight: int, assignments: Sequence[PartAllocation]) -> list[int]:
    """Each pod has one container here."""
    claims = [weight * each.replicas // each.replicas_in_all for each in assignments]
    total = sum(claims)
    if total <= weight:
        return claims
    exact = [Fraction(weight * claim, total) for claim in claims]
    found = [int(each) for each in exact]
    while sum(found) < weight:
        behind = [each - have for each, have in zip(exact, found, strict=True)]
        found[behind.index(max(behind))] += 1
    return found


@dataclass
class Sums:
    """µGPU·s, fractions where amounts are divided."""

    held: int = 0
    free: int = 0
    unsliced: int = 0
    unknown: int = 0
    lost: int = 0
    used: int = 0
    unattributed: Fraction = Fraction(0)
    used_unknown: int = 0
    energy: int = 0
    unallocated_energy: Fraction = Fraction(0)
    by_assignment: dict[AssignmentRecord, Fraction] = field(default_factory=dict)
    energy_by_assignment: dict[AssignmentRecord, Fraction] = field(default_factory=dict)


class NaiveGpu:
    """Told whole seconds of everything."""

    def __init__(self, reading: Reading, at: int) -> None:
        self.sums = Sums()
        self.at = self.first = at
        self.parts = {part.uuid: part.weight for part in reading.parts}
        self.upto = dict.fromkeys(self.parts, at)
        self.counter, self.counted_at = reading.condition.energy or 0, at
        self.counter_faults = 0
        self.is_lost = False

    def lose(self, at: int, polls: Sequence[tuple[int, PartAllocations]]) -> None:
        if not self.is_lost:
            self._states(at, polls)
        else:
            self.sums.lost += GPU * (at - self.at)
        self.at, self.is_lost = at, True

    def read(self, reading: Reading, at: int, polls: Sequence[tuple[int, PartAllocations]], zero_us: int) -> None:
        used: dict[AssignmentRecord | None, Fraction] = {}
        held: dict[AssignmentRecord | None, Fraction] = {}
        if self.is_lost:
            self.sums.lost += GPU * (at - self.at)
            self.upto = {}
        else:
            held = self._states(at, polls)
            for part in reading.parts:
                if part.uuid in self.upto:
                    self._use(part, at, polls, zero_us, used)
        self._energy(self._metered(reading.condition.energy or 0, at), used, held)
        self.parts = {part.uuid: part.weight for part in reading.parts}
        self.upto = {part.uuid: max(self.upto.get(part.uuid, at), at - LATE_S) for part in reading.parts}
        self.at, self.is_lost = at, False

    def _states(self, to: int, polls: Sequence[tuple[int, PartAllocations]]) -> dict[AssignmentRecord | None, Fraction]:
        had: dict[AssignmentRecord | None, Fraction] = {}
        for second in range(self.at, to):
            self.sums.unsliced += GPU - sum(self.parts.values())
            _add(had, None, GPU - sum(self.parts.values()))
            for uuid, weight in self.parts.items():
                assignments = assignments_at(uuid, second, polls)
                if assignments is None:
                    self.sums.unknown += weight
                    _add(had, None, weight)
                    continue
                shares = naive_shares(weight, assignments)
                self.sums.held += sum(shares)
                self.sums.free += weight - sum(shares)
                _add(had, None, weight - sum(shares))
                for each, share in zip(assignments, shares, strict=True):
                    _add(had, (uuid, each.pod), share)
        return had

    def _use(
        self,
        part: Part,
        at: int,
        polls: Sequence[tuple[int, PartAllocations]],
        zero_us: int,
        used: dict[AssignmentRecord | None, Fraction],
    ) -> None:
        upto = self.upto[part.uuid]
        for span in part.busy:
            for second in range((span.from_us - zero_us) // US_PER_SECOND, (span.to_us - zero_us) // US_PER_SECOND):
                if self.upto[part.uuid] <= second < at:
                    upto = max(upto, second + 1)
                    self._second(part, span.busy, assignments_at(part.uuid, second, polls), used)
        self.upto[part.uuid] = upto

    def _second(
        self,
        part: Part,
        busy: int,
        assignments: list[PartAllocation] | None,
        used: dict[AssignmentRecord | None, Fraction],
    ) -> None:
        use = self.parts[part.uuid] * busy  # in 10^-6 µGPU·s, which are µs·µGPU
        self.sums.used += use
        if assignments is None:
            self.sums.used_unknown += use
            _add(used, None, use)
            return
        left = Fraction(use)
        for each, ratio in portions(part, assignments, self.parts[part.uuid]):
            amount = use * ratio
            left -= amount
            _add(used, (part.uuid, each.pod), amount)
            _add(self.sums.by_assignment, (part.uuid, each.pod), amount)
        self.sums.unattributed += left
        _add(used, None, left)

    def _metered(self, counter: int, at: int) -> int:
        """No more than 5 kW, as no limit is known, and a second more for the counter's sake; jitter is ignored."""
        change, most = counter - self.counter, 5_000_000 * (at - self.counted_at + 1)
        if -5_000_000 <= change < 0:
            return 0
        self.counter, self.counted_at = counter, at
        if change < 0:
            self.counter_faults += counter > most
            return counter if counter <= most else 0
        self.counter_faults += change > most
        return min(change, most)

    def _energy(
        self, delta: int, used: dict[AssignmentRecord | None, Fraction], held: dict[AssignmentRecord | None, Fraction]
    ) -> None:
        self.sums.energy += delta
        claims = used if any(used.values()) else held
        total = sum(claims.values())
        if not total:
            self.sums.unallocated_energy += delta
            return
        for who, amount in claims.items():
            if who is None:
                self.sums.unallocated_energy += delta * amount / total
            else:
                _add(self.sums.energy_by_assignment, who, delta * amount / total)


def assignments_at(uuid: str, second: int, polls: Sequence[tuple[int, PartAllocations]]) -> list[PartAllocation] | None:
    """Who held the part in the second that begins then; None where nobody knows."""
    last = next((poll for poll in reversed(polls) if poll[0] <= second), None)
    if last is None or second >= last[0] + BELIEVED_S or second < polls[-1][0] - KEPT_S:
        return None
    return sorted(each for each in last[1].held if each.part == uuid)


def portions(
    part: Part, assignments: Sequence[PartAllocation], weight: int
) -> Iterator[tuple[PartAllocation, Fraction]]:
    """Each holder's portion of what the part did."""
    busy = [each for each in part.processes or () if each.busy]
    total = sum(each.busy or 0 for each in busy)
    shares = naive_shares(weight, assignments)
    for each, share in zip(assignments, shares, strict=True):
        if total and all(process.pod_uid is not None for process in part.processes or ()):
            own = sum(process.busy or 0 for process in busy if process.pod_uid == each.pod_uid)
            yield each, Fraction(own, total)
        else:
            yield each, Fraction(share, sum(shares))


def _add(sums: dict[Any, Fraction], key: object, amount: Fraction | int) -> None:
    sums[key] = sums.get(key, Fraction(0)) + amount

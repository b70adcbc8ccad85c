"""The GPU-time of the pods of one job, by exported tier and tenant, and how these pods ended."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from gputally.accounting.base.compact import shared, with_uid, without_uid
from gputally.accounting.jobs.failure_policy import PodEnd, end_of
from gputally.model.allocation import Segment
from gputally.model.pod_record import PodRecord

Payer = tuple[str, str]
"""The exported tier and tenant."""
Lines = dict[Payer, tuple[int, int]]
"""GPU-time (µs·µGPU) as lines a + b·t."""
NOTHING: Final[Mapping[Payer, tuple[int, int]]] = {}
_NO_ENDS: Final[Mapping[PodEnd, int]] = {}


def lines_of(segments: Sequence[Segment], *, from_us: int) -> Lines:
    """What the segments allocate from `from_us` on."""
    found: Lines = {}
    for each in segments:
        payer, quantity, start_us = each.labels[:2], each.quantity, max(each.start_us, from_us)
        a, b = found.get(payer, (0, 0))
        if each.end_us is None:
            found[payer] = a - quantity * start_us, b + quantity
        else:
            found[payer] = a + quantity * max(0, each.end_us - start_us), b
    return found


def added(known: Mapping[Payer, tuple[int, int]], lines: Mapping[Payer, tuple[int, int]], sign: int = 1) -> Lines:
    """`known` with further lines, or without them."""
    found = dict(known)
    for payer, (a, b) in lines.items():
        known_a, known_b = found.get(payer, (0, 0))
        found[payer] = known_a + sign * a, known_b + sign * b
    return found


class JobTime:
    """The pods of one Job. `present` are its pods in the working state, `departed` deleted ones that may be amended.

    `lines` are of all pods, `ends` of those that are present.
    """

    __slots__ = ("_lines", "departed", "ends", "present")

    def __init__(self, forgotten: Iterable[tuple[str, str, int]] = ()) -> None:
        self._lines: tuple[tuple[Payer, int, int], ...] = ()
        """A tuple: nearly all of thousands of Jobs have one payer, for whom a dict costs three times as much."""
        self.add({(tier, tenant): (amount, 0) for tier, tenant, amount in forgotten})
        self.present: Collection[str] = ()
        self.departed: Collection[str] = ()
        self.ends: Mapping[PodEnd, int] = _NO_ENDS

    @property
    def lines(self) -> Lines:
        """GPU-time (µs·µGPU) by payer."""
        return {payer: (a, b) for payer, a, b in self._lines}

    @property
    def holds_gpus(self) -> bool:
        """Whether any of its pods holds GPUs."""
        return any(b for _, _, b in self._lines)

    def enter(self, uid: str) -> None:
        """A pod is in the working state."""
        self.present = with_uid(self.present, uid)

    def drop(self, uid: str) -> None:
        """A pod leaves the working state."""
        self.present = without_uid(self.present, uid)

    def leave(self, uid: str) -> None:
        """A pod has left the working state, and may still be amended."""
        self.departed = with_uid(self.departed, uid)

    def add(self, lines: Mapping[Payer, tuple[int, int]], sign: int = 1) -> None:
        """Add lines, or take them back."""
        if lines:
            self._lines = tuple([(shared(payer), a, b) for payer, (a, b) in added(self.lines, lines, sign).items()])

    def add_ends(self, ends: Mapping[PodEnd, int]) -> None:
        """Add how pods ended; negative numbers take that back."""
        if ends:
            found = {each: self.ends.get(each, 0) + ends.get(each, 0) for each in (*self.ends, *ends)}
            self.ends = {each: count for each, count in found.items() if count}

    @property
    def payer(self) -> Payer | None:
        """Who had most of its GPU-time; None if nobody had any."""
        amounts = [(a, payer) for payer, a, _ in self._lines if a]
        return max(amounts)[1] if amounts else None


def ends_between(before: PodRecord | None, after: PodRecord | None) -> Mapping[PodEnd, int]:
    """What changes in the ends of pods as `after` replaces `before`; None has not ended."""
    old, new = end_of(before) if before else None, end_of(after) if after else None
    if old == new:
        return _NO_ENDS
    return {end: sign for end, sign in ((old, -1), (new, 1)) if end}


def with_time(
    known: Iterable[tuple[str, str, int]], lines: Mapping[Payer, tuple[int, int]]
) -> Iterator[tuple[str, str, int]]:
    """The time of forgotten pods with that of further ones, which have ended."""
    found = {(tier, tenant): amount for tier, tenant, amount in known}
    for payer, (a, _) in lines.items():
        found[payer] = found.get(payer, 0) + a
    return ((*payer, amount) for payer, amount in found.items())

"""Waterfalls from capacity to what was used in jobs that succeeded, whose losses add up exactly."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from gputally.model.allocation import State
from gputally.report.rounded_rows import OTHERS
from gputally.report.waterfall.waterfall_parts import (
    ALLOCATED,
    IDLE,
    MEASURED,
    NOT_LOST,
    OVERCOMMITTED,
    RUNNING,
    SINCE_CHECKPOINT,
    SINCE_START,
    SUCCEEDED,
    UNMEASURED,
    USED,
    USED_BEYOND,
    Billed,
    WaterfallPart,
)

CAPACITY: Final = "capacity"
CAUSES: Final[Mapping[str, tuple[str, ...]]] = {
    CAPACITY: (),
    ALLOCATED: ("free", "cordoned", "unhealthy", "unsliced", "unknown", OVERCOMMITTED),
    RUNNING: (State.STARTING.value, State.GANG_WAIT.value, State.TERMINATING.value),
    MEASURED: (UNMEASURED, USED_BEYOND),
    USED: (IDLE,),
    NOT_LOST: (SINCE_CHECKPOINT, SINCE_START),
    SUCCEEDED: ("failed", "failed_early", "completed_early", "deleted", "preempted", "lost", "running", "unknown"),
}
"""The causes of the difference to the step before, by step; the last ones are outcomes of jobs."""
GAINS: Final = (OVERCOMMITTED, USED_BEYOND)
"""The causes by which a step has more than the one before."""
Key = tuple[str, str]
"""Step and cause; the last step is the cause of what reached it."""
KEYS: Final[Sequence[Key]] = (
    *((step, cause) for step, causes in CAUSES.items() for cause in causes),
    (SUCCEEDED, SUCCEEDED),
)


class Amount(Struct, kw_only=True):
    """GPU-time (µs·µGPU), the part of it that has no price, and the cost, see `COST_UNIT`."""

    gpu_time: int = 0
    unpriced: int = 0
    cost: int = 0

    def add(self, other: "Amount", *, sign: int = 1) -> None:
        """Add the other one, or subtract it."""
        self.gpu_time += sign * other.gpu_time
        self.unpriced += sign * other.unpriced
        self.cost += sign * other.cost


class Waterfall(Struct, kw_only=True):
    """One waterfall in one currency; `labels` is None for the whole.

    `parts` are never negative; those of `GAINS` are missing in the steps before theirs. `billed` is what its
    allocations cost by their own prices.
    """

    labels: tuple[str, ...] | None
    currency: str
    first: str
    parts: dict[Key, Amount] = field(default_factory=lambda: {key: Amount() for key in KEYS})
    billed: int = 0

    @property
    def steps(self) -> tuple[str, ...]:
        """Its steps, from the first one on."""
        return tuple(CAUSES)[tuple(CAUSES).index(self.first) :]

    def level(self, step: str) -> Amount:
        """What reached this step."""
        found = Amount()
        for key in keys_after(step):
            found.add(self.parts[key], sign=sign_of(key))
        return found

    def add(self, other: "Waterfall") -> None:
        """Add all of another one."""
        self.billed += other.billed
        for key, amount in other.parts.items():
            self.parts[key].add(amount)


def keys_after(step: str) -> Iterator[Key]:
    """The parts that reached this step, and the gains after it."""
    later = tuple(CAUSES)[tuple(CAUSES).index(step) + 1 :]
    return (key for key in KEYS if key[0] in later or key == (SUCCEEDED, SUCCEEDED))


def sign_of(key: Key) -> int:
    """Whether the part counts in the steps before its own, or is missing there."""
    return -1 if key[1] in GAINS else 1


def waterfalls_of(
    parts: Iterable[WaterfallPart], billed: Iterable[Billed], *, first: str, top: int | None = None
) -> list[Waterfall]:
    """By currency, the whole and then its lines, the highest cost first; those beyond the `top` ones are added up.

    Lines begin at the allocated step. Time without a price belongs to the only currency, or has one of its own.
    """
    found, costs = list(parts), list(billed)
    known = sorted({each.price.currency for each in found if each.price} | {each.currency for each in costs})
    unpriced = known[0] if len(known) == 1 else ""
    sums: defaultdict[str, dict[tuple[str, ...] | None, Waterfall]] = defaultdict(dict)

    def waterfalls(labels: tuple[str, ...] | None, currency: str) -> Iterator[Waterfall]:
        lines = sums[currency or unpriced]
        for line in dict.fromkeys((None, labels or None)):
            begin = first if line is None else ALLOCATED
            yield lines.setdefault(line, Waterfall(labels=line, currency=currency or unpriced, first=begin))

    for part in found:
        amount = _amount(part)
        for each in waterfalls(part.labels, part.price.currency if part.price else ""):
            each.parts[part.step, part.cause].add(amount)
    for cost in costs:
        for each in waterfalls(cost.labels, cost.currency):
            each.billed += cost.cost
    return [each for currency in sorted(sums) for each in _ordered(sums[currency], top)]


def _amount(part: WaterfallPart) -> Amount:
    if part.price is None:
        return Amount(gpu_time=part.gpu_time, unpriced=part.gpu_time)
    return Amount(gpu_time=part.gpu_time, cost=part.price.cost(part.gpu_time))


def _ordered(found: Mapping[tuple[str, ...] | None, Waterfall], top: int | None) -> Iterator[Waterfall]:
    yield found[None]
    lines = [(labels, each) for labels, each in found.items() if labels is not None]
    levels = {labels: each.level(ALLOCATED) for labels, each in lines}
    lines.sort(key=lambda line: (-levels[line[0]].cost, -levels[line[0]].gpu_time, line[0]))
    yield from (each for _, each in lines[:top])
    if top is not None and (rest := lines[top:]):
        others = Waterfall(labels=(OTHERS,) * len(rest[0][0]), currency=rest[0][1].currency, first=ALLOCATED)
        for _, each in rest:
            others.add(each)
        yield others

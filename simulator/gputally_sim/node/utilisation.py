"""How busy pods keep their GPUs: by their annotation, else as the seed has it.

`pod.gputally.io/utilization`  `0.8`, or `0s:0.2,10m:0.9`: from 0 to 1, by the time since the containers began
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from gputally_sim.documents import Doc, annotation, labels_of, uid_of
from gputally_sim.instants import MINUTE_US, parse_duration
from gputally_sim.naming import choices

UTILISATION = "pod.gputally.io/utilization"
FULL = 1_000_000
"""Utilisation is in millionths."""

_SEGMENTS = 6
_RARELY_BUSY = "notebook"
"""The workload type of those whose users think, and go for lunch."""


@dataclass(frozen=True)
class Curve:
    """Utilisation by the time since the containers began (µs): each of the `steps`, the first at 0, holds to the next.

    It begins anew after each `period_us`; if that is None, the last step stays.
    """

    steps: tuple[tuple[int, int], ...]
    period_us: int | None = None

    def at(self, us: int) -> int:
        """Millionths at that time."""
        phase_us = us % self.period_us if self.period_us else us
        return self.steps[bisect_right(self.steps, phase_us, key=lambda step: step[0]) - 1][1]

    def cuts(self, from_us: int, to_us: int) -> Iterator[int]:
        """The instants between the two at which it may change."""
        period_us = self.period_us or to_us + 1
        for began_us in range(from_us - from_us % period_us, to_us, period_us):
            yield from (began_us + us for us, _ in self.steps if from_us < began_us + us < to_us)

    def integral(self, us: int) -> int:
        """Millionths times µs, from the beginning up to `us`."""
        cuts = [0, *self.cuts(0, us), us]
        return sum(self.at(cuts[i]) * (cuts[i + 1] - cuts[i]) for i in range(len(cuts) - 1))


def curve_of(pod: Doc, seed: int) -> Curve:
    """What the pod says of itself. What cannot be read says nothing: a client's slip must not end the simulation."""
    try:
        return parse(annotation(pod, UTILISATION))
    except ValueError:
        return drawn(choices(seed, "utilisation", uid_of(pod)), kind=labels_of(pod).get("workload-type", ""))


def parse(text: str) -> Curve:
    """The curve of an annotation; ValueError for anything else."""
    pairs = [part.rpartition(":") for part in text.split(",")]
    steps = sorted((parse_duration(since or "0"), _millionths(level)) for since, _, level in pairs)
    return Curve(tuple(steps if steps[0][0] == 0 else [(0, 0), *steps]))


def drawn(chance: Random, *, kind: str) -> Curve:
    """Most are well used, some half, some hardly at all; each goes up and down a little."""
    idle, half = (0.8, 0.95) if kind == _RARELY_BUSY else (0.12, 0.35)
    draw = chance.random()
    level = chance.uniform(0, 0.05) if draw < idle else chance.uniform(0.2, 0.6 if draw < half else 0.97)
    steps, us = [], 0
    for _ in range(_SEGMENTS):
        steps.append((us, round(FULL * min(1.0, level * chance.uniform(0.85, 1.15)))))
        us += chance.randint(5, 40) * MINUTE_US
    return Curve(tuple(steps), us)


def _millionths(text: str) -> int:
    level = float(text)
    if not 0 <= level <= 1:
        raise ValueError(f"{text!r} is not from 0 to 1")
    return round(level * FULL)

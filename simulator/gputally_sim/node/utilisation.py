"""GPU utilization of pods, from their annotation or else from the seed.

`pod.gputally.io/utilization`  `0.8`, or `0s:0.2,10m:0.9`: from 0 to 1, by time since container start
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
"""Utilization is in millionths."""

_SEGMENTS = 6
_MOSTLY_IDLE = "notebook"
"""The workload type of interactive users."""


@dataclass(frozen=True)
class Curve:
    """Utilization by time since container start (µs): each step lasts until the next one; the first step is at 0.

    The curve repeats after `period_us`; if None, the last step lasts forever.
    """

    steps: tuple[tuple[int, int], ...]
    period_us: int | None = None

    def at(self, us: int) -> int:
        """Utilization in millionths at that time."""
        phase_us = us % self.period_us if self.period_us else us
        return self.steps[bisect_right(self.steps, phase_us, key=lambda step: step[0]) - 1][1]

    def cuts(self, from_us: int, to_us: int) -> Iterator[int]:
        """Times in the interval at which the utilization may change."""
        period_us = self.period_us or to_us + 1
        for began_us in range(from_us - from_us % period_us, to_us, period_us):
            yield from (began_us + us for us, _ in self.steps if from_us < began_us + us < to_us)

    def integral(self, us: int) -> int:
        """Utilization in millionths times µs, from 0 to `us`."""
        cuts = [0, *self.cuts(0, us), us]
        return sum(self.at(cuts[i]) * (cuts[i + 1] - cuts[i]) for i in range(len(cuts) - 1))


def curve_of(pod: Doc, seed: int) -> Curve:
    """The pod's curve; an unreadable annotation is ignored, because client errors must not stop the simulation."""
    try:
        return parse(annotation(pod, UTILISATION))
    except ValueError:
        return drawn(choices(seed, "utilisation", uid_of(pod)), kind=labels_of(pod).get("workload-type", ""))


def parse(text: str) -> Curve:
    """Parse the annotation. Raises: ValueError."""
    pairs = [part.rpartition(":") for part in text.split(",")]
    steps = sorted((parse_duration(since or "0"), _millionths(level)) for since, _, level in pairs)
    return Curve(tuple(steps if steps[0][0] == 0 else [(0, 0), *steps]))


def drawn(chance: Random, *, kind: str) -> Curve:
    """A random curve: most have high utilization, some medium, some almost none; each varies slightly."""
    idle, half = (0.8, 0.95) if kind == _MOSTLY_IDLE else (0.12, 0.35)
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

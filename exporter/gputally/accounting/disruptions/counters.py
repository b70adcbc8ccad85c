"""Counts disruptions, and the steps of preemptions as a histogram."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final

from msgspec.structs import replace

from gputally.accounting.pods.posting import BEYOND
from gputally.accounting.totals.total import Total
from gputally.accounting.totals.totals import Totals
from gputally.model.disruptions import Cause, Victim
from gputally.model.units import US_PER_SECOND

STEPS: Final = ("request", "stop", "reuse", "replace")
"""From the decision to the deletion request; to the end of the last container; from the release to the next binding on
that node; from the decision until the replacement runs."""
STEP_BOUNDS_S: Final = (1, 2, 5, 10, 20, 30, 45, 60, 120, 300, 600, 1800, 2700, 3600)
"""Upper bounds (s): grace periods are 30 to 60 s, images and data take minutes."""
_BOUNDS = (*map(str, STEP_BOUNDS_S), BEYOND)
KUBELET_US: Final = 2 * US_PER_SECOND
"""A kubelet gives containers at least this long to end, whatever the grace period, and times have whole seconds."""


class DisruptionCounts:
    """Keeps the totals equal to the sum over all disruptions; each remembers how it counts."""

    def __init__(self, totals: Totals, limit: Callable[[str, str], str]) -> None:
        self._totals = totals
        self._limit = limit

    def recounted(self, each: Victim, *, at_us: int) -> Victim:
        """The disruption as it counts now; corrects an earlier count by the difference."""
        counted, timed = self._counted(each, at_us), self._timed(each, at_us)
        overran = self._overrun(each, counted, at_us)
        violation = self._violation(each, counted, at_us)
        if (counted, timed, overran, violation) == (each.counted, each.timed, each.overran, each.violation):
            return each
        return replace(each, counted=counted, timed=timed, overran=overran, violation=violation)

    def withdraw(self, each: Victim, *, at_us: int) -> None:
        """Take back all counts."""
        if each.counted:
            self._totals.count(Total.DISRUPTIONS, each.counted, -1, at_us=at_us)
        for step, duration_us in each.timed:
            self._time(step, duration_us, -1, at_us)
        if each.counted and each.overran:
            self._totals.count(Total.GRACE_EXCEEDED, each.counted[:2], -1, at_us=at_us)
        if each.violation:
            self._totals.count(Total.BUDGET_VIOLATIONS, each.violation, -1, at_us=at_us)

    def _counted(self, each: Victim, at_us: int) -> tuple[str, str, str]:
        if each.counted and each.counted[2] == each.cause:
            return each.counted
        if each.counted:
            self._totals.count(Total.DISRUPTIONS, each.counted, -1, at_us=at_us)
            tier, tenant, _ = each.counted
        else:
            tier, tenant = self._limit("tier", each.victim_tier), self._limit("tenant", each.victim_tenant)
        labels = (tier, tenant, each.cause.value)
        self._totals.count(Total.DISRUPTIONS, labels, 1, at_us=at_us)
        return labels

    def _timed(self, each: Victim, at_us: int) -> tuple[tuple[str, int], ...]:
        timed = tuple(_durations(each)) if each.cause is Cause.PREEMPTION else ()
        if timed == each.timed:
            return each.timed
        for step, duration_us in each.timed:
            if (step, duration_us) not in timed:
                self._time(step, duration_us, -1, at_us)
        for step, duration_us in timed:
            if (step, duration_us) not in each.timed:
                self._time(step, duration_us, 1, at_us)
        return timed

    def _overrun(self, each: Victim, counted: tuple[str, str, str], at_us: int) -> bool:
        overran = (each.grace_exceeded_us or 0) > KUBELET_US
        if overran != each.overran:
            self._totals.count(Total.GRACE_EXCEEDED, counted[:2], 1 if overran else -1, at_us=at_us)
        return overran

    def _violation(self, each: Victim, counted: tuple[str, str, str], at_us: int) -> tuple[str, str, str] | None:
        violation = counted if each.budget_violated else None
        for labels, times in ((each.violation, -1), (violation, 1)):
            if labels and violation != each.violation:
                self._totals.count(Total.BUDGET_VIOLATIONS, labels, times, at_us=at_us)
        return violation

    def _time(self, step: str, duration_us: int, times: int, at_us: int) -> None:
        bound = _BOUNDS[bisect_left(STEP_BOUNDS_S, -(-duration_us // US_PER_SECOND))]  # seconds, rounded up
        self._totals.count(Total.PREEMPTION_STEPS, (step, bound), times, at_us=at_us)
        self._totals.count(Total.PREEMPTION_STEP_TIME, (step,), times * duration_us, at_us=at_us)


def _durations(each: Victim) -> Iterator[tuple[str, int]]:
    """The known steps in µs."""
    spans = (
        (each.decided_us, each.requested_us),
        (each.requested_us, each.stopped_us),
        (each.released_us, each.reused_us),
        (each.decided_us, each.replaced_us),
    )
    for step, (from_us, to_us) in zip(STEPS, spans, strict=True):
        if from_us is not None and to_us is not None:
            yield step, max(0, to_us - from_us)

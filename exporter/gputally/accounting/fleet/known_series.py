"""Series that are known in advance: those of every tier are exported as 0 before anything is counted."""

from gputally.accounting.disruptions.disruption_counts import STEP_BOUNDS_S, STEPS
from gputally.accounting.disruptions.preemptions import UNKNOWN
from gputally.accounting.pods.posting import BEYOND, SCHEDULING_BOUNDS_S
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.accounting.totals.total import Total
from gputally.accounting.totals.totals import Totals


class KnownSeries:
    """Declares the series that follow from the tiers, once per tier."""

    def __init__(self, totals: Totals, limiter: LabelLimiter) -> None:
        self._totals = totals
        self._tiers = limiter.values["tier"]
        self._declared: set[str] = set()

    def declare(self, *, at_us: int) -> None:
        """Declare the time-to-schedule histogram and the preemption matrix for all known tiers."""
        self._totals.declare(Total.UNMATCHED, (), at_us=at_us)
        self._declare_steps(at_us)
        for tier in sorted(self._tiers.keys() - self._declared):
            self._declared.add(tier)
            self._totals.declare(Total.SCHEDULING_TIME, (tier,), at_us=at_us)
            for bound in (*SCHEDULING_BOUNDS_S, BEYOND):
                self._totals.declare(Total.SCHEDULED, (tier, str(bound)), at_us=at_us)
            for victim, preemptor in self._pairs(tier):
                self._totals.declare(Total.PREEMPTIONS, (victim, preemptor), at_us=at_us)
                self._totals.declare(Total.PREEMPTED, (victim, preemptor), at_us=at_us)
                if preemptor != UNKNOWN:
                    self._totals.declare(Total.FORBIDDEN, (victim, preemptor), at_us=at_us)

    def _declare_steps(self, at_us: int) -> None:
        for step in STEPS:
            self._totals.declare(Total.PREEMPTION_STEP_TIME, (step,), at_us=at_us)
            for bound in (*STEP_BOUNDS_S, BEYOND):
                self._totals.declare(Total.PREEMPTION_STEPS, (step, str(bound)), at_us=at_us)

    def _pairs(self, tier: str) -> set[tuple[str, str]]:
        """The additional matrix entries of a new tier; an unknown pod may preempt, but is never a victim."""
        known = {(tier, other) for other in self._declared} | {(other, tier) for other in self._declared}
        return known | {(tier, UNKNOWN)}

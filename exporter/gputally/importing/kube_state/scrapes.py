"""When Prometheus scraped kube-state-metrics: what is not in a scrape was gone by then."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

from gputally.importing.kube_state.prometheus_api import SampledSeries

_LAPSED_S: Final = 300.0
"""A target whose last scrape is that much older than those of others was replaced."""


class ScrapeTarget(NamedTuple):
    """One kube-state-metrics, as Prometheus names it. Two Prometheus servers of a pair have the same targets."""

    job: str
    instance: str


def target_of(metric: Mapping[str, str]) -> ScrapeTarget:
    """The target of a series."""
    return ScrapeTarget(metric.get("job", ""), metric.get("instance", ""))


class Scrapes:
    """The times (s) of all successful scrapes, ascending, by target."""

    def __init__(self, up: Iterable[SampledSeries], targets: Collection[ScrapeTarget]) -> None:
        """From all samples of `up`, which is 1 for a successful scrape."""
        times: defaultdict[ScrapeTarget, set[float]] = defaultdict(set)
        steps: list[float] = []
        for series in up:
            found = [at_s for at_s, value in series.values if value == "1"]
            if found and (target := target_of(series.metric)) in targets:
                times[target].update(found)
                steps += [after - before for before, after in pairwise(found)]
        self._times = {target: sorted(found) for target, found in times.items()}
        self.interval_s = median(steps) if steps else 0.0
        """The usual time between two scrapes of a target by one server; 0 with fewer than two."""

    def __bool__(self) -> bool:
        return bool(self._times)

    @property
    def first_s(self) -> float:
        """The first scrape of any target."""
        return min(times[0] for times in self._times.values())

    @property
    def last_s(self) -> float:
        """The last scrape of any target."""
        return max(self.lasts.values())

    @property
    def lasts(self) -> Mapping[ScrapeTarget, float]:
        """The last scrape of each target."""
        return {target: times[-1] for target, times in self._times.items()}

    @property
    def all_seen_s(self) -> float:
        """The time since which every present target was scraped: what is missing since then has ended."""
        lasts = [times[-1] for times in self._times.values() if times[-1] > self._new_until(times)]
        return min((last for last in lasts if last >= max(lasts) - _LAPSED_S), default=self.first_s)

    def next_after(self, targets: Collection[ScrapeTarget], at_s: float) -> float | None:
        """The first scrape after `at_s` of these targets, or, if they were replaced, of others; None without one.

        It shows what has ended, so it is not the first one of a target.
        """
        own = self._first_after(targets, at_s)
        return self._first_after(self._times, at_s) if own is None else own

    def _first_after(self, targets: Iterable[ScrapeTarget], at_s: float) -> float | None:
        found = []
        for target in targets:
            times = self._times.get(target, [0.0])
            if (place := bisect_right(times, max(at_s, self._new_until(times)))) < len(times):
                found.append(times[place])
        return min(found, default=None)

    def _new_until(self, times: Sequence[float]) -> float:
        """Until then, a target may lack what is there: a kube-state-metrics is scraped while it still lists objects.

        Two servers scrape it one after the other, so its second scrape may be as early as its first.
        """
        return times[0] + self.interval_s / 2

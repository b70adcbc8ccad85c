"""Histograms whose buckets are counters that do not overlap."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from gputally.accounting.totals.series import Labels
from gputally.catalog.metric import HistogramRow
from gputally.model.units import US_PER_SECOND


def bounds_of(seconds: Sequence[int]) -> tuple[str, ...]:
    """The upper bounds as labels of counters; the last one has no limit."""
    return *map(str, seconds), "+Inf"


def histogram_of(
    labels: Labels, counts: Mapping[Labels, int], bounds: Sequence[str], *, sum_us: int, created_us: int | None
) -> HistogramRow:
    """The histogram of one group; `counts` are by its labels and the upper bound."""
    cumulative = accumulate(counts.get((*labels, bound), 0) for bound in bounds)
    return HistogramRow(
        labels=labels,
        buckets=tuple((_shown(bound), count) for bound, count in zip(bounds, cumulative, strict=True)),
        sum=sum_us / US_PER_SECOND,
        created_us=created_us,
    )


def _shown(bound: str) -> str:
    """Upper bounds as floats, the way Prometheus compares them."""
    return bound if bound == "+Inf" else f"{bound}.0"

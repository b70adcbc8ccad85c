"""How long the reasons of pending pods lag behind."""

from collections.abc import Iterator
from itertools import accumulate
from math import isinf

from gputally.catalog.metric import HistogramRow, Metric, MetricType
from gputally.model.health import LAG_BOUNDS_S, Health


def verdict_lag(health: Health) -> Iterator[HistogramRow]:
    """One histogram."""
    counts = accumulate(health.verdicts.batches.get(bound, 0) for bound in LAG_BOUNDS_S)
    bounds = ("+Inf" if isinf(bound) else str(bound) for bound in LAG_BOUNDS_S)
    yield HistogramRow(labels=(), buckets=tuple(zip(bounds, counts, strict=True)), sum=health.verdicts.lag_s)


VERDICT_LAG = Metric[Health](
    name="gputally_verdict_lag_seconds",
    kind=MetricType.HISTOGRAM,
    help="Time from an observation until the reasons of pending pods follow from it.",
    rows=verdict_lag,
)

METRICS = (VERDICT_LAG,)

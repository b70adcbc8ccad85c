"""Metrics of the closing of periods; without `closing` in the configuration, none of them has a series."""

from collections.abc import Iterator

from gputally.catalog.metric import Metric, MetricType, Row
from gputally.model.health import Health
from gputally.model.units import US_PER_SECOND


def _last_end(health: Health) -> Iterator[Row]:
    if health.closing and health.closing.last_end_us is not None:
        yield Row((), health.closing.last_end_us / US_PER_SECOND)


CLOSED_PERIODS = Metric[Health](
    name="gputally_closed_periods",
    kind=MetricType.GAUGE,
    help="Closed periods in the ledger, if the configuration says which to close.",
    rows=lambda health: [Row((), health.closing.periods)] if health.closing else [],
    reference_only=True,
)

CLOSED_PERIOD_END = Metric[Health](
    name="gputally_closed_period_end_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="End of the last closed period.",
    rows=_last_end,
    reference_only=True,
)

CLOSING_FAILURES = Metric[Health](
    name="gputally_period_closing_failures_total",
    kind=MetricType.COUNTER,
    help="Failed attempts to close a period; each is repeated after a minute, and the log has the reason.",
    rows=lambda health: [Row((), health.closing.failures)] if health.closing else [],
    reference_only=True,
)

METRICS = (CLOSED_PERIODS, CLOSED_PERIOD_END, CLOSING_FAILURES)

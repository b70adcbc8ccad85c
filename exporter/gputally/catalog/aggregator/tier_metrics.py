"""Existing tiers, and which of them serve user traffic."""

from collections.abc import Iterator

from gputally.accounting.snapshot import Snapshot
from gputally.catalog.metric import Metric, MetricType, Row


def tier_info(snapshot: Snapshot) -> Iterator[Row]:
    """A row for every tier, including tiers of pending pods only."""
    serving = snapshot.serving
    return (Row((tier, "true" if serves else "false"), 1) for tier, serves in sorted(serving.tiers.items()))


def serving_expected(snapshot: Snapshot) -> Iterator[Row]:
    """0 for a configuration with `serving: []`."""
    yield Row((), snapshot.serving.expected)


def serving_patterns_unmatched(snapshot: Snapshot) -> Iterator[Row]:
    """0 without a configuration."""
    yield Row((), snapshot.serving.unmatched)


TIER_INFO = Metric[Snapshot](
    name="gputally_tier_info",
    kind=MetricType.INFO,
    help="Tiers that exist, and whether each serves user traffic: join by tier to select serving tiers.",
    labels=("tier", "serving"),
    rows=tier_info,
)

SERVING_EXPECTED = Metric[Snapshot](
    name="gputally_serving_expected",
    kind=MetricType.GAUGE,
    help="Whether some tier is expected to serve user traffic: 0 if the configuration declares that none does.",
    rows=serving_expected,
)

SERVING_PATTERNS_UNMATCHED = Metric[Snapshot](
    name="gputally_serving_patterns_unmatched",
    kind=MetricType.GAUGE,
    help="Patterns in the configuration's list of serving tiers that match no tier: check their spelling.",
    rows=serving_patterns_unmatched,
)

METRICS = (TIER_INFO, SERVING_EXPECTED, SERVING_PATTERNS_UNMATCHED)

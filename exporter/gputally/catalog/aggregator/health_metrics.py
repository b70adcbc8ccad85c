"""Metrics of the exporter's own health, separate from the metrics of GPUs."""

from collections.abc import Callable, Iterator
from itertools import accumulate
from math import isinf

from gputally.catalog.metric import HistogramRow, Metric, MetricType, Row
from gputally.model.health import LAG_BOUNDS_S, Health, WatchHealth
from gputally.model.kube.meta import Lookup
from gputally.model.units import US_PER_SECOND
from gputally.model.usage import PullOutcome


def _each_watch(value: Callable[[WatchHealth], float]) -> Callable[[Health], Iterator[Row]]:
    return lambda health: (Row((watch.kind.value,), value(watch)) for watch in health.watches)


def _activity(health: Health) -> Iterator[Row]:
    """No row before the first activity: any timestamp would be wrong."""
    for watch in health.watches:
        if watch.last_activity_us is not None:
            yield Row((watch.kind.value,), watch.last_activity_us / US_PER_SECOND)


def _errors(health: Health) -> Iterator[Row]:
    for watch in health.watches:
        for reason in ("forbidden", "idle", "refused", "server", "throttled", "unreachable"):
            yield Row((watch.kind.value, reason), watch.errors.get(reason, 0))


def _last_write(health: Health) -> Iterator[Row]:
    if health.ledger.last_write_us is not None:
        yield Row((), health.ledger.last_write_us / US_PER_SECOND)


def _deliveries(health: Health) -> Iterator[Row]:
    if health.deliveries:
        for result, count in health.deliveries.results.items():
            yield Row((result,), count)


BUILD_INFO = Metric[Health](
    name="gputally_build_info",
    kind=MetricType.INFO,
    help="Version of the exporter and of the Python it runs on.",
    labels=("version", "python_version"),
    rows=lambda health: [Row((health.version, health.python), 1)],
)

WATCH_SYNCED = Metric[Health](
    name="gputally_watch_synced",
    kind=MetricType.GAUGE,
    help="Whether the watch has reached a complete state since the process started.",
    labels=("resource",),
    rows=_each_watch(lambda watch: watch.synced),
)

WATCH_CONNECTED = Metric[Health](
    name="gputally_watch_connected",
    kind=MetricType.GAUGE,
    help="Whether the watch has an open stream now.",
    labels=("resource",),
    rows=_each_watch(lambda watch: watch.connected),
)

WATCH_AVAILABLE = Metric[Health](
    name="gputally_watch_available",
    kind=MetricType.GAUGE,
    help="Whether an optional resource exists and may be watched; until then, its data is unknown.",
    labels=("resource",),
    rows=lambda health: (
        Row((watch.kind.value,), watch.available) for watch in health.watches if watch.available is not None
    ),
)

WATCH_LAST_ACTIVITY = Metric[Health](
    name="gputally_watch_last_activity_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="Time when the watch last received data: every minute or two if healthy, except for rare Events.",
    labels=("resource",),
    rows=_activity,
)

WATCH_OBJECTS = Metric[Health](
    name="gputally_watch_objects_total",
    kind=MetricType.COUNTER,
    help="Objects received in watch events and lists, including discarded ones.",
    labels=("resource",),
    rows=_each_watch(lambda watch: watch.events),
)

WATCH_BOOKMARKS = Metric[Health](
    name="gputally_watch_bookmarks_total",
    kind=MetricType.COUNTER,
    help="Bookmarks received.",
    labels=("resource",),
    rows=_each_watch(lambda watch: watch.bookmarks),
)

WATCH_LISTINGS = Metric[Health](
    name="gputally_watch_listings_total",
    kind=MetricType.COUNTER,
    help="Complete lists; more than one since the start means that the watch lost its position.",
    labels=("resource",),
    rows=_each_watch(lambda watch: watch.listings),
)

WATCH_RECONNECTS = Metric[Health](
    name="gputally_watch_reconnects_total",
    kind=MetricType.COUNTER,
    help="Streams reopened after the previous one ended.",
    labels=("resource",),
    rows=_each_watch(lambda watch: watch.reconnects),
)

WATCH_EXPIRED = Metric[Health](
    name="gputally_watch_expired_total",
    kind=MetricType.COUNTER,
    help="Times the API server no longer had the history since the watch's resource version.",
    labels=("resource",),
    rows=_each_watch(lambda watch: watch.expired),
)

WATCH_MALFORMED = Metric[Health](
    name="gputally_watch_malformed_objects_total",
    kind=MetricType.COUNTER,
    help="Objects or lines that could not be decoded and were skipped.",
    labels=("resource",),
    rows=_each_watch(lambda watch: watch.malformed),
)

WATCH_ERRORS = Metric[Health](
    name="gputally_watch_errors_total",
    kind=MetricType.COUNTER,
    help="Failed requests and broken streams.",
    labels=("resource", "reason"),
    rows=_errors,
)

SKIPPED_OBJECTS = Metric[Health](
    name="gputally_skipped_objects_total",
    kind=MetricType.COUNTER,
    help="Objects with contradictory fields that were excluded from the accounting.",
    labels=("resource",),
    rows=lambda health: [Row((watch.kind.value,), health.skipped.get(watch.kind, 0)) for watch in health.watches],
)

OWNER_LOOKUPS = Metric[Health](
    name="gputally_owner_lookups_total",
    kind=MetricType.COUNTER,
    help="Lookups of the owners that name jobs; while an owner is unknown, the owner below it names the job.",
    labels=("result",),
    rows=lambda health: (Row((result.value,), health.owners.lookups.get(result, 0)) for result in Lookup),
    reference_only=True,
)

QUEUED_OBSERVATIONS = Metric[Health](
    name="gputally_queued_observations",
    kind=MetricType.GAUGE,
    help="Observations received from the watches and not yet accounted.",
    rows=lambda health: [Row((), health.queued)],
)

LEDGER_WRITABLE = Metric[Health](
    name="gputally_ledger_writable",
    kind=MetricType.GAUGE,
    help="Whether the last write to the ledger succeeded; if not, accounting continues in memory.",
    rows=lambda health: [Row((), health.ledger.writable)],
)

LEDGER_WAITING = Metric[Health](
    name="gputally_ledger_waiting_rows",
    kind=MetricType.GAUGE,
    help="Rows that wait in memory until the ledger is writable again.",
    rows=lambda health: [Row((), health.ledger.waiting)],
)

LEDGER_LAST_WRITE = Metric[Health](
    name="gputally_ledger_last_write_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="Time of the last write to the ledger.",
    rows=_last_write,
)

LEDGER_WRITES = Metric[Health](
    name="gputally_ledger_writes_total",
    kind=MetricType.COUNTER,
    help="Transactions committed to the ledger.",
    rows=lambda health: [Row((), health.ledger.writes)],
)

LEDGER_WRITE_FAILURES = Metric[Health](
    name="gputally_ledger_write_failures_total",
    kind=MetricType.COUNTER,
    help="Failed ledger transactions, each of which is retried.",
    rows=lambda health: [Row((), health.ledger.failures)],
)

LEDGER_WRITE_SECONDS = Metric[Health](
    name="gputally_ledger_write_seconds_total",
    kind=MetricType.COUNTER,
    help="Time spent writing the ledger.",
    rows=lambda health: [Row((), health.ledger.write_us / US_PER_SECOND)],
)

LEDGER_CHECK = Metric[Health](
    name="gputally_ledger_check_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="Time of the last complete ledger check without errors since the process started.",
    reference_only=True,
    rows=lambda health: [] if health.ledger.checked_us is None else [Row((), health.ledger.checked_us / US_PER_SECOND)],
)

LEDGER_DAMAGED = Metric[Health](
    name="gputally_ledger_damaged",
    kind=MetricType.GAUGE,
    help="Whether the last ledger check found rows that cannot be read or contradict each other.",
    rows=lambda health: [Row((), health.ledger.damaged)],
)

CLOCK_SKEW = Metric[Health](
    name="gputally_clock_skew_seconds",
    kind=MetricType.GAUGE,
    help="Local clock minus API server clock at its last response, 0 while they may agree; server time is used.",
    rows=lambda health: [Row((), health.clock.skew_us / US_PER_SECOND)],
)

REJECTED_DATES = Metric[Health](
    name="gputally_api_dates_rejected_total",
    kind=MetricType.COUNTER,
    help="API server responses whose date was rejected because no second response confirmed it: one of its machines "
    "has a wrong clock.",
    rows=lambda health: [Row((), health.clock.rejected)],
)

CERTIFICATE_EXPIRY = Metric[Health](
    name="gputally_certificate_expiry_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="Expiry of the certificate that the aggregator serves with (server) or presents to agents (agents).",
    labels=("use",),
    rows=lambda health: (
        Row((use,), expiry) for use, read in health.certificates.items() if (expiry := read()) is not None
    ),
)

DELIVERIES = Metric[Health](
    name="gputally_preemption_deliveries_total",
    kind=MetricType.COUNTER,
    help="Records of preemptions posted to the webhook, by result: failed ones are repeated, rejected ones are not.",
    labels=("result",),
    rows=_deliveries,
)

PENDING_DELIVERIES = Metric[Health](
    name="gputally_preemption_deliveries_pending",
    kind=MetricType.GAUGE,
    help="Records of preemptions that the webhook has not got yet, also those that are not complete.",
    rows=lambda health: [Row((), health.deliveries.pending)] if health.deliveries else [],
    reference_only=True,
)


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


def _states(health: Health) -> Iterator[Row]:
    reachable = sum(agent.reachable for agent in health.agents.agents.values())
    yield Row(("reachable",), reachable)
    yield Row(("unreachable",), len(health.agents.agents) - reachable)


def _watermark(health: Health) -> Iterator[Row]:
    """No row without an agent: any timestamp would be wrong."""
    agents = health.agents.agents.values()
    marks = [agent.watermark_us for agent in agents if agent.reachable and agent.watermark_us is not None]
    if marks:
        yield Row((), min(marks) / US_PER_SECOND)


AGENTS = Metric[Health](
    name="gputally_agents",
    kind=MetricType.GAUGE,
    help="Known agents, by whether they responded to the last pull.",
    labels=("state",),
    rows=_states,
)

AGENT_PULLS = Metric[Health](
    name="gputally_agent_pulls_total",
    kind=MetricType.COUNTER,
    help="Requests to agents by outcome.",
    labels=("outcome",),
    rows=lambda health: (Row((outcome.value,), health.agents.pulls.get(outcome.value, 0)) for outcome in PullOutcome),
)

AGENTS_WATERMARK = Metric[Health](
    name="gputally_agents_watermark_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="Time up to which the slowest reachable agent has measured its node.",
    rows=_watermark,
)

METRICS = (
    BUILD_INFO,
    WATCH_SYNCED,
    WATCH_CONNECTED,
    WATCH_AVAILABLE,
    WATCH_LAST_ACTIVITY,
    WATCH_OBJECTS,
    WATCH_BOOKMARKS,
    WATCH_LISTINGS,
    WATCH_RECONNECTS,
    WATCH_EXPIRED,
    WATCH_MALFORMED,
    WATCH_ERRORS,
    SKIPPED_OBJECTS,
    OWNER_LOOKUPS,
    QUEUED_OBSERVATIONS,
    LEDGER_WRITABLE,
    LEDGER_WAITING,
    LEDGER_LAST_WRITE,
    LEDGER_WRITES,
    LEDGER_WRITE_FAILURES,
    LEDGER_WRITE_SECONDS,
    LEDGER_CHECK,
    LEDGER_DAMAGED,
    CLOCK_SKEW,
    REJECTED_DATES,
    CERTIFICATE_EXPIRY,
    DELIVERIES,
    PENDING_DELIVERIES,
    VERDICT_LAG,
    CLOSED_PERIODS,
    CLOSED_PERIOD_END,
    CLOSING_FAILURES,
    AGENTS,
    AGENT_PULLS,
    AGENTS_WATERMARK,
)

"""Health of the aggregator and of agents: each part has one writer, and the exposition reads it."""

from collections.abc import Callable, Mapping
from math import inf
from typing import Final

from msgspec import Struct, field

from gputally.model.budgets import BudgetsHealth
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Lookup

LAG_BOUNDS_S: Final = (0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 10.0, inf)
"""Upper bounds of the lag of verdicts."""


class WatchHealth(Struct, kw_only=True):
    """Counts since the process started, and the last activity of the stream (µs)."""

    kind: Kind
    synced: bool = False
    connected: bool = False
    available: bool | None = None
    """Whether an optional resource exists and may be watched; None for required resources."""
    last_activity_us: int | None = None
    events: int = 0
    """Objects received in watch events and lists, including discarded ones."""
    bookmarks: int = 0
    listings: int = 0
    reconnects: int = 0
    expired: int = 0
    """Times the server's history was too short (410)."""
    malformed: int = 0
    """Lines or objects that could not be decoded; skipped."""
    errors: dict[str, int] = field(default_factory=dict)
    """Failed requests and broken streams by reason: unreachable, forbidden, idle, throttled, server, refused."""

    @property
    def initialized(self) -> bool:
        """Whether the initial state is complete, or unavailable."""
        return self.synced or self.available is False


class LedgerHealth(Struct, kw_only=True):
    """Health of ledger writes and checks; updated by the writing task."""

    writable: bool = True
    last_write_us: int | None = None
    writes: int = 0
    failures: int = 0
    waiting: int = 0
    """Rows in memory since the last write failed."""
    write_us: int = 0
    """Time spent writing, µs."""
    checked_us: int | None = None
    """Time of the last complete check."""
    damaged: bool = False


class ClockHealth(Struct, kw_only=True):
    """Clock differences; updated by the aggregator's clock."""

    skew_us: int = 0
    """Our wall clock minus the API server's, as far as its responses prove a difference."""
    rejected: int = 0
    """Responses whose date no other response confirmed."""


class AgentHealth(Struct, kw_only=True):
    """One agent at its last pull; `watermark_us`, by our clock, is the time up to which it has accounted its node."""

    reachable: bool
    watermark_us: int | None = None


class AgentsHealth(Struct, kw_only=True):
    """Health of the agent pulls; updated by the puller."""

    agents: dict[str, AgentHealth] = field(default_factory=dict)
    """Known agents that were pulled, by node."""
    pulls: dict[str, int] = field(default_factory=dict)
    """Pulls by outcome."""


class OwnersHealth(Struct, kw_only=True):
    """Health of the owner lookups; updated by the owner walk."""

    lookups: dict[Lookup, int] = field(default_factory=dict)
    """Lookups by result."""


class ClosingHealth(Struct, kw_only=True):
    """Health of the closing of periods; updated by the closer. `last_end_us` is the end of the last closed period."""

    periods: int = 0
    last_end_us: int | None = None
    failures: int = 0


class DeliveriesHealth(Struct, kw_only=True):
    """Health of the webhook of preemptions; updated by its task."""

    results: dict[str, int] = field(default_factory=dict)
    """Posted records by result."""
    pending: int = 0
    """Records that are not delivered yet, also those that are not final."""


class VerdictHealth(Struct, kw_only=True):
    """How long verdicts on pending pods lagged behind the observations behind them; updated by the accountant.

    `batches` are renewals of verdicts by the upper bound of their lag (s), not cumulative; `lag_s` is its sum.
    """

    batches: dict[float, int] = field(default_factory=dict)
    lag_s: float = 0.0

    def renewed(self, lag_s: float) -> None:
        """Count a renewal."""
        bound = next(each for each in LAG_BOUNDS_S if lag_s <= each)
        self.batches[bound] = self.batches.get(bound, 0) + 1
        self.lag_s += lag_s


class Health(Struct, kw_only=True):
    """The exporter's own health, separate from its measurements."""

    version: str
    python: str
    watches: tuple[WatchHealth, ...]
    ledger: LedgerHealth
    clock: ClockHealth = field(default_factory=ClockHealth)
    agents: AgentsHealth = field(default_factory=AgentsHealth)
    owners: OwnersHealth = field(default_factory=OwnersHealth)
    closing: ClosingHealth | None = None
    """None if no periods are closed."""
    deliveries: DeliveriesHealth | None = None
    """None without a webhook of preemptions."""
    skipped: dict[Kind, int] = field(default_factory=dict)
    """Objects with contradictory fields, excluded from the accounting."""
    queued: int = 0
    """Observations received and not yet accounted."""
    verdicts: VerdictHealth = field(default_factory=VerdictHealth)
    budgets: BudgetsHealth | None = None
    """None if no budgets are configured."""
    certificates: Mapping[str, Callable[[], int | None]] = {}
    """When our own certificates expire (s), by their use."""


class NodeHealth(Struct, kw_only=True):
    """Counts since the agent started, by outcome; times in µs, None before the first."""

    version: str
    python: str
    driver: str = ""
    nvml: str = ""
    reads: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("ok", "lost", "hung", "failed"), 0))
    """Readings of GPUs."""
    last_read_us: int | None = None
    polls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("ok", "unreachable", "refused"), 0))
    """Kubelet polls for device assignments."""
    last_poll_us: int | None = None
    certificate: Callable[[], int | None] = lambda: None
    """When the server certificate expires (s); None without one."""

"""The exporter's own health: each part is written by what it is about alone, and read by the exposition."""

from msgspec import Struct, field

from gputally.model.kube import Kind
from gputally.model.owner import Lookup


class WatchHealth(Struct, kw_only=True):
    """Counts since the process started, and when the stream last showed life (µs)."""

    kind: Kind
    synced: bool = False
    connected: bool = False
    available: bool | None = None
    """Of a resource that can be done without, whether the server has it and lets us watch it; None for others."""
    last_activity_us: int | None = None
    events: int = 0
    """Objects received in changes and listings, kept or not."""
    bookmarks: int = 0
    listings: int = 0
    reconnects: int = 0
    expired: int = 0
    """Times the server's history no longer reached back (410)."""
    malformed: int = 0
    """Lines or objects that could not be decoded; skipped."""
    errors: dict[str, int] = field(default_factory=dict)
    """Failed requests and broken streams by kind of error: unreachable, forbidden, idle, throttled, server, refused."""

    @property
    def settled(self) -> bool:
        """Whether nothing of it is awaited: all that existed was told, or nothing can be."""
        return self.synced or self.available is False


class LedgerHealth(Struct, kw_only=True):
    """How writing the ledger goes: written by the task that writes it, read by the exposition."""

    writable: bool = True
    last_write_us: int | None = None
    writes: int = 0
    failures: int = 0
    waiting: int = 0
    """Rows that wait in memory because the last write failed."""
    write_us: int = 0
    """Time spent writing, µs."""
    checked_us: int | None = None
    """When it was last looked through to its end."""
    damaged: bool = False


class ClockHealth(Struct, kw_only=True):
    """How far our clocks agree: written by the clock of the aggregator, read by the exposition."""

    skew_us: int = 0
    """Our wall clock minus the API server's, as far as its answers prove a difference."""
    rejected: int = 0
    """Answers whose time nobody else confirmed."""


class AgentHealth(Struct, kw_only=True):
    """One agent as it was last pulled; `watermark_us`, by our clock, is up to when it had accounted its node."""

    reachable: bool
    watermark_us: int | None = None


class AgentsHealth(Struct, kw_only=True):
    """How pulling the agents goes: written by what pulls them, read by the exposition."""

    agents: dict[str, AgentHealth] = field(default_factory=dict)
    """The known ones that were pulled, by node."""
    pulls: dict[str, int] = field(default_factory=dict)
    """By outcome."""


class OwnersHealth(Struct, kw_only=True):
    """How the lookups of owners go: written by the owner walk, read by the exposition."""

    lookups: dict[Lookup, int] = field(default_factory=dict)
    """By how they ended."""


class Health(Struct, kw_only=True):
    """The exporter's own health, apart from what it measures."""

    version: str
    python: str
    watches: tuple[WatchHealth, ...]
    ledger: LedgerHealth
    clock: ClockHealth = field(default_factory=ClockHealth)
    agents: AgentsHealth = field(default_factory=AgentsHealth)
    owners: OwnersHealth = field(default_factory=OwnersHealth)
    skipped: dict[Kind, int] = field(default_factory=dict)
    """Objects that contradict themselves, left out of the accounting."""
    queued: int = 0
    """Observations read and not yet accounted."""

"""The health of a watch: written by that watch alone, read by the exposition."""

from msgspec import Struct, field

from gputally.model.kube import Kind


class WatchHealth(Struct, kw_only=True):
    """Counts since the process started, and when the stream last showed life (µs)."""

    kind: Kind
    synced: bool = False
    connected: bool = False
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
    """Failed requests and broken streams by kind of error: unreachable, forbidden, idle, throttled, server."""

"""Health of an agent: updated by its loops, read by the exposition."""

from collections.abc import Callable

from msgspec import Struct, field


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

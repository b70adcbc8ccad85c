"""Metrics of the process: memory, CPU, open files, garbage collection."""

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from gputally.exposition.text_format import END


def process_registry() -> CollectorRegistry:
    """A separate registry with the standard collectors of the client library."""
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return registry


def registry_text(registry: CollectorRegistry, *, openmetrics: bool) -> bytes:
    """The exposition of `registry` (process, platform, garbage collector), without the final `# EOF`."""
    if not openmetrics:
        return generate_latest(registry)
    text: bytes = generate_openmetrics(registry)  # type: ignore[no-untyped-call]  # untyped in the client
    return text.removesuffix(END)

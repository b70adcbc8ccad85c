"""Resource usage of the process: memory, CPU, open files, garbage collection."""

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector


def process_registry() -> CollectorRegistry:
    """A separate registry with the standard collectors of the client library."""
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return registry

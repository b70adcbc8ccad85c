"""What the checks of dashboards and rules let pass, each with its reason; what nothing needs is a problem too."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Foreign(NamedTuple):
    """A metric that is not ours: why we read it, its dimension, and its labels besides those of the target."""

    reason: str
    dimension: str
    labels: tuple[str, ...] = ()
    grows: bool = False


TARGET_LABELS: Final[Mapping[str, str]] = {
    "cluster": "added where a Prometheus or its remote storage holds several clusters",
    "instance": "Prometheus' own, of what it scraped: tells apart the agents of nodes",
    "job": "Prometheus' own, of what it scraped",
}
"""Labels that come from where a series was scraped, and that every series may have."""

FOREIGN: Final[Mapping[str, Foreign]] = {
    "process_cpu_seconds_total": Foreign("what exporter and agents themselves cost", "seconds", grows=True),
    "process_start_time_seconds": Foreign("restarts of the exporter", "timestamp_seconds"),
    "process_resident_memory_bytes": Foreign("what exporter and agents themselves cost", "bytes"),
}
"""Metrics of others."""

BARE: Final[Mapping[tuple[str, str], str]] = {}
"""Counters read outside rate() and increase(), or gauges inside: by file and series, the reason."""

_INTEGRAL = "the sum of samples a minute apart is an integral: GPUs become GPU-hours"
MEASURED_OTHERWISE: Final[Mapping[tuple[str, str], str]] = {
    ("dashboards/generated/fleet.json", "Nodes in the time range"): _INTEGRAL,
    ("dashboards/generated/tenants.json", "Top 50 jobs by GPU-hours"): _INTEGRAL,
}
"""Values that the checks take for another dimension than they have: by file and the title of the panel, the reason."""

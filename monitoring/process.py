"""Memory and CPU of gputally's own processes."""

from typing import Any

from monitoring.panel import Look, Query, timeseries
from monitoring.selector import Selectors
from monitoring.unit import BYTES, RATIO

_LEGEND = "{{cluster}} {{instance}}"


def process(select: Selectors, info: str, *, whose: str) -> tuple[Any, ...]:
    """Memory and CPU of the processes that expose the series `info`; Prometheus has these metrics of other jobs too."""
    ours = f"* on (cluster, job, instance) group_left () group by (cluster, job, instance) ({info})"
    memory, processor = select("process_resident_memory_bytes"), select.rate("process_cpu_seconds_total")
    return (
        timeseries(
            Look("Memory", f"Resident memory {whose}.", unit=BYTES, empty="not reported"),
            Query(f"max by (cluster, instance) ({memory} {ours})", _LEGEND),
        ),
        timeseries(
            Look("CPU", "The share of one core.", unit=RATIO, empty="not reported"),
            Query(f"max by (cluster, instance) ({processor} {ours})", _LEGEND),
        ),
    )

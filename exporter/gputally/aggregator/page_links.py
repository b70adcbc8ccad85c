"""The links of the aggregator's status page."""

from collections.abc import Iterator
from typing import Final

from gputally.aggregator.settings import Settings
from gputally.model.api.allocations import PATH as ALLOCATIONS_PATH
from gputally.model.api.at_risk import PATH as AT_RISK_PATH
from gputally.model.api.pending import PENDING_PATH
from gputally.web.pending_routes import PENDING_PAGE_PATH
from gputally.web.report_requests import PREEMPTIONS_PATH
from gputally.web.report_routes import OPENAPI_PATH, PAGE_PATH

PODS_PATH: Final = "/metrics/pods"
_LINKS: Final = (
    (PODS_PATH, "metrics by pod and by node, in the Prometheus format"),
    (ALLOCATIONS_PATH, "who holds or wants which GPUs now, as JSON"),
    (AT_RISK_PATH, "the work that a preemption would destroy now, by job and by node, as JSON"),
    (PREEMPTIONS_PATH, "pods that were preempted, evicted or lost with their node, as JSON"),
    (PENDING_PAGE_PATH, "pods that wait for GPUs, why, and what would help"),
    (PENDING_PATH, "the same as JSON"),
    (PAGE_PATH, "GPU-hours and cost of a period, and why they changed"),
    (OPENAPI_PATH, "description of the HTTP API (OpenAPI)"),
)
DASHBOARDS: Final = (
    ("gputally-fleet", "dashboard: capacity, utilisation and cost of the fleet"),
    ("gputally-tenants", "dashboard: GPU-hours and cost of tenants and jobs"),
    ("gputally-tiers", "dashboard: tiers and preemption"),
    ("gputally-pending", "dashboard: pods that wait for GPUs"),
    ("gputally-exporter", "dashboard: health of gputally"),
)
"""(UID, meaning) of dashboards in Grafana."""


def page_links(settings: Settings) -> Iterator[tuple[str, str]]:
    """(path, meaning) of the pages, and of the dashboards if it is known where Grafana is."""
    yield from ((path, meaning) for path, meaning in _LINKS if settings.pod_metrics or path != PODS_PATH)
    if settings.grafana:
        yield from ((f"{settings.grafana}/d/{uid}", meaning) for uid, meaning in DASHBOARDS)

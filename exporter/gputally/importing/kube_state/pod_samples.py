"""What the series of kube-state-metrics say of one pod."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from gputally.importing.kube_state import series_names
from gputally.importing.kube_state.prometheus_api import SampledSeries
from gputally.model.units import US_PER_SECOND

INFO: Final = "kube_pod_info"
PHASE: Final = "kube_pod_status_phase"
DELETION: Final = "kube_pod_deletion_timestamp"
REQUESTS: Final = "kube_pod_container_resource_requests"
INIT_REQUESTS: Final = "kube_pod_init_container_resource_requests"
LABELS: Final = "kube_pod_labels"
OWNER: Final = "kube_pod_owner"
CREATED: Final = "kube_pod_created"
SCHEDULED: Final = "kube_pod_status_scheduled_time"
STARTED: Final = "kube_pod_start_time"
RUNNING: Final = "kube_pod_container_state_started"
COMPLETED: Final = "kube_pod_completion_time"
REASON: Final = "kube_pod_status_reason"
DISRUPTION: Final = "kube_pod_status_disruption_reason"
TERMINATED_REASON: Final = "kube_pod_container_status_terminated_reason"
INIT_INFO: Final = "kube_pod_init_container_info"
RESTARTS: Final = "kube_pod_container_status_restarts_total"
INITIALIZED: Final = "kube_pod_status_initialized_time"
OF_A_POD: Final = (
    *(INFO, PHASE, DELETION, REQUESTS, INIT_REQUESTS, LABELS, OWNER, CREATED, SCHEDULED, STARTED, RUNNING, COMPLETED),
    *(REASON, DISRUPTION, TERMINATED_REASON, INIT_INFO, RESTARTS, INITIALIZED),
)
"""All series that are read of a pod; each has its UID."""
TERMINAL: Final = ("Succeeded", "Failed")


class Sightings(Struct, frozen=True, kw_only=True):
    """When scrapes showed a pod that has no timestamp of its end (µs).

    It was there at `seen_us`, the first scrape without it was at `absent_us`. Its phase was first terminal at
    `terminal_us`, and before that not yet at `active_us`; it first had a deletion time at `deleting_us`.
    """

    seen_us: int
    absent_us: int | None
    active_us: int | None = None
    terminal_us: int | None = None
    deleting_us: int | None = None


class PodSamples(Struct, kw_only=True):
    """The last value of each series of a pod, by metric. `labels` are those of the newest `kube_pod_labels`.

    `is_alive` says that the last scrape of the window showed it; then, and if its end has a timestamp, there are no
    `sightings`.
    """

    uid: str
    series: dict[str, list[SampledSeries]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    is_alive: bool
    sightings: Sightings | None = None

    @property
    def info(self) -> Mapping[str, str]:
        """The labels of `kube_pod_info`; it is another series once the pod has a node."""
        return max((each.metric for each in self.of(INFO)), key=lambda info: bool(node_of(info)), default={})

    @property
    def phase(self) -> str:
        """The last phase: a terminal one, if a second scraper had not seen it yet; "" if it is not known."""
        phases = set(self.set_labels(PHASE, "phase"))
        return next((each for each in (*TERMINAL, *sorted(phases)) if each in phases), "")

    @property
    def has_exact_end(self) -> bool:
        """Whether a timestamp says when it ended."""
        return self.phase in TERMINAL and self.time_us(COMPLETED) is not None

    def of(self, metric: str) -> list[SampledSeries]:
        """Its series of this metric."""
        return self.series.get(metric, [])

    def time_us(self, metric: str, *, last: bool = False) -> int | None:
        """The earliest or last time in the values of a metric, in µs; None without a series."""
        times = [round(each.number) for each in self.of(metric) if each.number > 0]
        return (max if last else min)(times) * US_PER_SECOND if times else None

    def set_labels(self, metric: str, label: str) -> Iterator[str]:
        """The values of a label in series that are 1."""
        return (each.metric[label] for each in self.of(metric) if each.number == 1 and each.metric.get(label))


def node_of(metric: Mapping[str, str]) -> str:
    """The node of a series; "" if it has none."""
    return series_names.field(metric, "node")

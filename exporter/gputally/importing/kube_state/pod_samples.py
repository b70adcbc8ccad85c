"""What the series of kube-state-metrics say of one pod."""

from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Final, NamedTuple

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
TERMINATED: Final = "kube_pod_container_status_terminated"
INIT_INFO: Final = "kube_pod_init_container_info"
RESTARTS: Final = "kube_pod_container_status_restarts_total"
INITIALIZED: Final = "kube_pod_status_initialized_time"
OF_A_POD: Final = (
    *(INFO, PHASE, DELETION, REQUESTS, INIT_REQUESTS, LABELS, OWNER, CREATED, SCHEDULED, STARTED, RUNNING, COMPLETED),
    *(REASON, DISRUPTION, TERMINATED_REASON, TERMINATED, INIT_INFO, RESTARTS, INITIALIZED),
)
"""All series that are read of a pod; each has its UID."""
TERMINAL: Final = ("Succeeded", "Failed")
_LAST_S: Final = 253_402_300_799
"""The end of the year 9999; nothing else that reads times knows later ones."""
_NO_TIMES: Final = (0, -62_135_596_800)
_MOST: Final = 10**9
"""More devices than any node has."""


class RejectedSeries(NamedTuple):
    """What was not imported: a pod with its UID, or a sample of a node; the series at fault, and the reason."""

    object: str
    series: str
    reason: str

    def __str__(self) -> str:
        """For people."""
        return f"{self.object}, {self.series}: {self.reason}"


class UnusableSeries(Exception):
    """A series that is missing, contradicts others, or has a value that cannot be."""

    def __init__(self, series: str, reason: str) -> None:
        super().__init__(reason)
        self.series = series


def seconds_of(metric: str, text: str) -> int | None:
    """A time in seconds since the epoch; None for 1970 and Go's zero time, which are none. Raises: UnusableSeries."""
    value = float(text)
    if value in _NO_TIMES:
        return None
    if not isfinite(value) or not 0 < value <= _LAST_S:
        raise UnusableSeries(metric, f"{text} is not a time")
    return round(value)


def amount_of(metric: str, text: str) -> int:
    """A number of devices. Raises: UnusableSeries for what is not a whole number, or more than any node has."""
    value = float(text)
    if not isfinite(value) or not 0 <= value < _MOST or value != int(value):
        raise UnusableSeries(metric, f"{text} is not a number of devices")
    return int(value)


def _expect_count(metric: str, text: str) -> None:
    if not (isfinite(value := float(text)) and value >= 0):
        raise UnusableSeries(metric, f"{text} is not a count")


def expect_flag(metric: str, text: str) -> None:
    """Raises: UnusableSeries unless the value says yes (1) or no (0)."""
    if float(text) not in (0, 1):
        raise UnusableSeries(metric, f"{text} is neither 0 nor 1")


_CHECKS: Final[Mapping[str, Callable[[str, str], object]]] = {
    **dict.fromkeys((CREATED, SCHEDULED, STARTED, RUNNING, COMPLETED, DELETION, INITIALIZED), seconds_of),
    **dict.fromkeys((PHASE, REASON, DISRUPTION, TERMINATED, TERMINATED_REASON), expect_flag),
    **dict.fromkeys((REQUESTS, INIT_REQUESTS), amount_of),
    RESTARTS: _expect_count,
}
"""What the value of a series must be; of the others, only the labels are read."""


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
    `sightings`. All samples are from before `until_us`. The pod cannot be imported if a series is `unusable`.
    """

    uid: str
    until_us: int
    series: dict[str, list[SampledSeries]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    is_alive: bool
    sightings: Sightings | None = None
    unusable: UnusableSeries | None = None

    def check(self) -> None:
        """Mark the pod if the value of any series cannot be: the program that wrote it, or its clock, is broken."""
        for name, found in self.series.items():
            for each in found if name in _CHECKS else ():
                try:
                    _CHECKS[name](name, each.text)
                except UnusableSeries as error:
                    self.unusable = error

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
        return self.phase in TERMINAL and self.time_us(COMPLETED) is not None and not self._may_outlast_completion

    @property
    def _may_outlast_completion(self) -> bool:
        """Whether a container may have run longer than those whose end `kube_pod_completion_time` has.

        That is of main containers which have terminated: sidecars end later, and a pod whose node is lost fails with
        containers that never reported an end.

        Source: kubernetes/kube-state-metrics internal/store/pod.go, createPodCompletionTimeFamilyGenerator.
        """
        if any(each.metric.get("restart_policy") == "Always" for each in self.of(INIT_INFO)):
            return True
        found = self.of(TERMINATED)
        ended = {series_names.field(each.metric, "container") for each in found if each.number == 1}
        return any(series_names.field(each.metric, "container") not in ended for each in found)

    def of(self, metric: str) -> list[SampledSeries]:
        """The series of the pod of this metric."""
        return self.series.get(metric, [])

    def time_us(self, metric: str, *, last: bool = False) -> int | None:
        """The earliest or last time in the values of a metric, in µs; None without a series."""
        times = [at_s for each in self.of(metric) if (at_s := seconds_of(metric, each.text)) is not None]
        return (max if last else min)(times) * US_PER_SECOND if times else None

    def set_labels(self, metric: str, label: str) -> Iterator[str]:
        """The values of a label in series that are 1."""
        return (each.metric[label] for each in self.of(metric) if each.number == 1 and each.metric.get(label))


def node_of(metric: Mapping[str, str]) -> str:
    """The node of a series; "" if it has none."""
    return series_names.field(metric, "node")

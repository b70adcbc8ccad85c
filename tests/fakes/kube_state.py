"""Samples of kube-state-metrics for pods with known lives."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from tests.fakes.prometheus_history import FakePrometheus

TARGET: Final = {"job": "kube-state-metrics", "instance": "10.0.0.1:8080"}
PHASES: Final = ("Pending", "Running", "Succeeded", "Failed", "Unknown")


class LifeOfPod(Struct, frozen=True, kw_only=True):
    """What became of a pod; times in seconds. It has GPUs in [scheduled, ended), and is in the API until `removed`.

    A pod with a `phase` reports that and its completion from `ended` on. `deleting` is when deletion was requested.
    `accepted` is its start time, which its kubelet sets when it accepts or rejects the pod.
    """

    uid: str
    namespace: str = "red"
    gpus: int = 1
    resource: str = "nvidia_com_gpu"
    node: str = "n1"
    class_name: str = ""
    created: int
    scheduled: int | None
    accepted: int | None = None
    started: int | None = None
    ended: int | None = None
    removed: int | None = None
    phase: str = ""
    deleting: int | None = None
    grace: int = 30
    labels: Mapping[str, str] = field(default_factory=dict)
    owner: tuple[str, str] | None = None
    reason: str = ""
    disruption: str = ""
    has_completion: bool = True
    mains_ended: int | None = None
    """When the main containers ended, if a sidecar ran longer."""


class KubeState:
    """Writes samples of pods and nodes at the times of `scrapes` (s, ascending).

    The first scrape has no series with the prefixes `late`: their objects are not listed yet.
    """

    def __init__(
        self,
        history: FakePrometheus,
        scrapes: Sequence[float],
        target: Mapping[str, str] = TARGET,
        late: tuple[str, ...] = (),
    ) -> None:
        self._history = history
        self._scrapes = scrapes
        self._target = target
        self._late = late
        history.add("up", target, [(at_s, 1.0) for at_s in scrapes])

    def node(  # noqa: PLR0913 - a node has that many independent properties
        self,
        name: str,
        labels: Mapping[str, str],
        *,
        gpus: int = 8,
        since: float = 0,
        until: float | None = None,
        created: float | None = None,
        machine: str = "",
    ) -> None:
        """A node that is there in [since, until); without a time of creation and a machine, nothing exports them."""

        def write(series: str, more: Mapping[str, str], value: float = 1) -> None:
            self.constant(series, {"node": name, **more}, value, since=since, until=until)

        write("kube_node_labels", labels)
        write("kube_node_status_capacity", {"resource": "nvidia_com_gpu"}, gpus)
        if created is not None:
            write("kube_node_created", {}, created)
        if machine:
            write("kube_node_info", {"system_uuid": machine})

    def constant(
        self, name: str, labels: Mapping[str, str], value: float = 1, *, since: float = 0, until: float | None = None
    ) -> None:
        """A series with the same value in [since, until)."""
        first = max(bisect_left(self._scrapes, since), int(name.startswith(self._late)))
        end = len(self._scrapes) if until is None else bisect_left(self._scrapes, until)
        if first < end:
            self._history.add(name, {**labels, **self._target}, [(at_s, value) for at_s in self._scrapes[first:end]])

    def pod(self, pod: LifeOfPod) -> None:
        """All series of a pod."""
        ids = {"namespace": pod.namespace, "pod": f"pod-{pod.uid}", "uid": pod.uid}
        bound = pod.removed if pod.scheduled is None else pod.scheduled
        self._info(pod, ids, "", pod.created, bound)
        if pod.scheduled is not None:
            self._info(pod, ids, pod.node, pod.scheduled, pod.removed)
            self.constant("kube_pod_status_scheduled_time", ids, pod.scheduled, since=pod.scheduled, until=pod.removed)
        self.constant("kube_pod_created", ids, pod.created, since=pod.created, until=pod.removed)
        self._phases(pod, ids)
        self._times(pod, ids)
        if pod.labels:
            self.constant("kube_pod_labels", {**ids, **pod.labels}, since=pod.created, until=pod.removed)
        if pod.owner:
            owner = {"owner_kind": pod.owner[0], "owner_name": pod.owner[1], "owner_is_controller": "true"}
            self.constant("kube_pod_owner", ids | owner, since=pod.created, until=pod.removed)

    def _info(self, pod: LifeOfPod, ids: Mapping[str, str], node: str, since: int, until: int | None) -> None:
        info = {**ids, "node": node, "priority_class": pod.class_name}
        self.constant("kube_pod_info", {key: value for key, value in info.items() if value}, since=since, until=until)
        for resource, amount in ((pod.resource, pod.gpus), ("cpu", 4)):
            labels = {**ids, "container": "main", "node": node, "resource": resource, "unit": "integer"}
            labels = {key: value for key, value in labels.items() if value}
            self.constant("kube_pod_container_resource_requests", labels, amount, since=since, until=until)

    def _phases(self, pod: LifeOfPod, ids: Mapping[str, str]) -> None:
        instants = [pod.created, pod.started, pod.ended if pod.phase else None]
        lasting = [
            (phase, at) for phase, at in zip(("Pending", "Running", pod.phase), instants, strict=True) if at is not None
        ]
        ends = (*(at for _, at in lasting[1:]), pod.removed)
        for (current, since), until in zip(lasting, ends, strict=True):
            for phase in PHASES:
                labels = {**ids, "phase": phase}
                self.constant("kube_pod_status_phase", labels, float(phase == current), since=since, until=until)

    def _times(self, pod: LifeOfPod, ids: Mapping[str, str]) -> None:
        main = {**ids, "container": "main"}
        if pod.mains_ended is not None:
            sidecar = {**ids, "container": "proxy", "restart_policy": "Always"}
            self.constant("kube_pod_init_container_info", sidecar, since=pod.created, until=pod.removed)
        if pod.started is not None:
            started = pod.started
            self.constant("kube_pod_container_state_started", main, started, since=started, until=pod.removed)
        if pod.accepted is not None:
            self.constant("kube_pod_start_time", ids, pod.accepted, since=pod.accepted, until=pod.removed)
        self._deletion(pod, ids)
        if pod.phase and pod.ended is not None:
            if pod.has_completion:
                at = pod.ended if pod.mains_ended is None else pod.mains_ended
                self.constant("kube_pod_completion_time", ids, at, since=at, until=pod.removed)
            if pod.reason:
                self.constant(
                    "kube_pod_status_reason", {**ids, "reason": pod.reason}, since=pod.ended, until=pod.removed
                )

    def _deletion(self, pod: LifeOfPod, ids: Mapping[str, str]) -> None:
        if pod.deleting is None:
            return
        value = pod.deleting + pod.grace
        self.constant("kube_pod_deletion_timestamp", ids, value, since=pod.deleting, until=pod.removed)
        if pod.disruption:
            reason = {**ids, "reason": pod.disruption}
            self.constant("kube_pod_status_disruption_reason", reason, since=pod.deleting, until=pod.removed)

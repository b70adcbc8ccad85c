"""API objects as the server returns them, with times in seconds since midnight of 2026-07-01 (UTC)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from gputally.model.kube.events import Event
from gputally.model.kube.meta import Namespace
from gputally.model.kube.nodes import Node
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.pods import Pod
from gputally.model.kube.policy import PriorityClass
from gputally.model.units import US_PER_SECOND

Json = dict[str, Any]
MIDNIGHT = datetime(2026, 7, 1, tzinfo=UTC)
MIDNIGHT_S = 1_782_864_000
GPU_NAME = "nvidia.com/gpu"
NEVER = "1970-01-01T00:00:00Z"
"""What containerd reports as the start of a container that never ran."""


_NO_TIMES: Json = {"startedAt": None, "finishedAt": None}


def us(seconds: float) -> int:
    """The instant `seconds` after midnight, in µs since the epoch."""
    return MIDNIGHT_S * US_PER_SECOND + round(seconds * US_PER_SECOND)


def instant(seconds: int) -> str:
    """The instant `seconds` after midnight, as the API writes it."""
    return (MIDNIGHT + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, kw_only=True)
class PodForm:
    """One version of a pod. `unscheduled` is when its scheduler marked it unschedulable, unaware of the binding.

    `deleted` is when its deletion was requested; `marked` is the time of its DisruptionTarget condition. `accepted` is
    when its kubelet accepted it, by default when it started; `start_failed` is when its runtime failed to start the
    container, which it reports with a start in 1970. `before` is the run before the present one, as (start, finish,
    exit code). Its kubelet restarts all containers since `restarting`; of one that it has `removed`, it does not report
    the times any more. It requests `more` resources, and `claims` by template; a claim serves the extended resources
    `by_claim` once it is bound. `inits` are its init containers as (start, finish or None). The main container is
    `lost` if its kubelet cannot find it, and `waiting` after a finished run. A kubelet that rejects a pod removes all
    `statuses` of containers, and its conditions. The kubelet's clock is `clock` seconds ahead.
    """

    name: str = "a"
    uid: str = ""
    namespace: str = "ml"
    version: int = 1
    created: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    gpus: int = 1
    resource: str = GPU_NAME
    tier: str = ""
    priority: int | None = None
    preemption_policy: str = ""
    node: str = ""
    scheduled: int | None = None
    unscheduled: int | None = None
    accepted: int | None = None
    start_failed: int | None = None
    clock: int = 0
    started: int | None = None
    finished: int | None = None
    exit_code: int = 0
    before: tuple[int, int, int] | None = None
    restarting: int | None = None
    restarting_status: str = "True"
    removed: bool = False
    inits: tuple[tuple[int, int | None], ...] = ()
    lost: bool = False
    waiting: bool = False
    statuses: bool = True
    restart_policy: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    phase: str = ""
    reason: str = ""
    message: str = ""
    termination_message: str = ""
    deleted: int | None = None
    grace: int = 30
    marked: int | None = None
    mark: str = "PreemptionByScheduler"
    mark_status: str = "True"
    mark_type: str = "DisruptionTarget"
    mark_message: str = ""
    owners: tuple[Json, ...] = ()
    scheduling_group: str = ""
    more: Mapping[str, int] = field(default_factory=dict)
    image: str = ""
    claims: tuple[str, ...] = ()
    by_claim: tuple[str, ...] = ()

    def manifest(self) -> Json:
        """The object in the API."""
        parts = {"metadata": self._meta(), "spec": self._spec(), "status": self._status()}
        return {"apiVersion": "v1", "kind": "Pod", **parts}

    def _meta(self) -> Json:
        meta: Json = {
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid or f"uid-{self.name}",
            "resourceVersion": str(self.version),
            "creationTimestamp": instant(self.created),
            "labels": dict(self.labels),
            "ownerReferences": list(self.owners),
        }
        if self.annotations:
            meta["annotations"] = dict(self.annotations)
        if self.deleted is not None:
            meta["deletionTimestamp"] = instant(self.deleted + self.grace)
            meta["deletionGracePeriodSeconds"] = self.grace
        return meta

    def _spec(self) -> Json:
        amounts = {self.resource: str(self.gpus)} if self.gpus else {}
        amounts |= {name: str(amount) for name, amount in self.more.items()}
        main: Json = {"name": "main", "resources": {"requests": amounts, "limits": amounts}, "image": self.image}
        spec: Json = {"containers": [main]}
        if self.node:
            spec["nodeName"] = self.node
        if self.node_selector:
            spec["nodeSelector"] = dict(self.node_selector)
        if self.restart_policy:
            spec["restartPolicy"] = self.restart_policy
        if self.tier:
            spec |= {"priorityClassName": self.tier, "priority": self.priority or 0}
        if self.preemption_policy:
            spec["preemptionPolicy"] = self.preemption_policy
        if self.claims:
            spec["resourceClaims"] = [{"name": name, "resourceClaimTemplateName": name} for name in self.claims]
        if self.scheduling_group:
            spec["schedulingGroup"] = {"podGroupName": self.scheduling_group}
        return spec

    def _status(self) -> Json:
        status: Json = {"phase": self.phase or ("Running" if self.started is not None else "Pending")}
        status["conditions"] = list(self._conditions())
        if (accepted := self.started if self.accepted is None else self.accepted) is not None:
            status["startTime"] = self._by_its_node(accepted)
        if self.reason:
            status["reason"] = self.reason
        if self.message:
            status["message"] = self.message
        if self.by_claim and self.node:
            mappings = [{"containerName": "main", "resourceName": name, "requestName": name} for name in self.by_claim]
            claim = {"resourceClaimName": f"{self.name}-extended-resources", "requestMappings": mappings}
            status["extendedResourceClaimStatus"] = claim
        if not self.statuses:
            return status
        if (state := self._container_state()) is not None:
            status["containerStatuses"] = [{"name": "main", "state": state, "lastState": self._last_state()}]
        if self.inits:
            status["initContainerStatuses"] = [
                {"name": f"init-{i}", "state": _run(started, finished, self.clock), "lastState": {}}
                for i, (started, finished) in enumerate(self.inits)
            ]
        return status

    def _conditions(self) -> Iterable[Json]:
        if self.unscheduled is not None or not self.node:
            since = self.created if self.unscheduled is None else self.unscheduled
            yield {"type": "PodScheduled", "status": "False", "lastTransitionTime": instant(since)}
        elif self.scheduled is not None and self.statuses:
            yield {"type": "PodScheduled", "status": "True", "lastTransitionTime": instant(self.scheduled)}
        if self.restarting is not None:
            restarting = {"type": "AllContainersRestarting", "status": self.restarting_status}
            yield restarting | {"lastTransitionTime": self._by_its_node(self.restarting)}
        if self.marked is not None:
            yield {
                "type": self.mark_type,
                "status": self.mark_status,
                "reason": self.mark,
                "message": self.mark_message,
                "lastTransitionTime": instant(self.marked),
            }

    def _by_its_node(self, at: int) -> str:
        return instant(at + self.clock)

    def _last_state(self) -> Json:
        if self._waits_again:
            return self._terminated()
        if self.removed:
            return {"terminated": {"exitCode": 137, "reason": "RestartingAllContainers"} | _NO_TIMES}
        if self.before:
            started, finished, code = self.before
            times = {"startedAt": self._by_its_node(started), "finishedAt": self._by_its_node(finished)}
            return {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"} | times}
        if self.start_failed is None:
            return {}
        times = {"startedAt": NEVER, "finishedAt": self._by_its_node(self.start_failed)}
        return {"terminated": {"exitCode": 128, "reason": "StartError"} | times}

    def _container_state(self) -> Json | None:
        if self.lost:
            return {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"} | _NO_TIMES}
        if self._waits_again:
            return {"waiting": {"reason": "CrashLoopBackOff"}}
        if self.finished is not None:
            return self._terminated()
        if self.started is not None:
            return {"running": {"startedAt": self._by_its_node(self.started)}}
        return {"waiting": {"reason": "ContainerCreating"}} if self.node else None

    @property
    def _waits_again(self) -> bool:
        return self.waiting and self.started is not None and self.finished is not None

    def _terminated(self) -> Json:
        started = {"startedAt": self._by_its_node(self.started)} if self.started is not None else {}
        if self.started is None and self.start_failed is not None:
            started = {"startedAt": NEVER}
        result: Json = {"exitCode": self.exit_code, "reason": "Error" if self.exit_code else "Completed"}
        if self.termination_message:
            result["message"] = self.termination_message
        return {"terminated": started | {"finishedAt": self._by_its_node(self.finished or 0)} | result}


def _run(started: int, finished: int | None, clock: int) -> Json:
    if finished is None:
        return {"running": {"startedAt": instant(started + clock)}}
    return {
        "terminated": {"startedAt": instant(started + clock), "finishedAt": instant(finished + clock), "exitCode": 0}
    }


@dataclass(frozen=True, kw_only=True)
class NodeForm:
    """One version of a node. `allocatable` is by default `capacity`; `ready_since` is its Ready condition's time.

    `machine` is the system UUID of its machine.
    """

    name: str = "n1"
    uid: str = ""
    version: int = 1
    created: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    gpus: int = 8
    capacity: Mapping[str, int] | None = None
    allocatable: Mapping[str, int] | None = None
    ready: str = "True"
    ready_since: int | None = None
    cordoned: bool = False
    taints: tuple[Json, ...] = ()
    conditions: tuple[Json, ...] = ()
    machine: str = ""

    def manifest(self) -> Json:
        """The object in the API."""
        capacity = dict(self.capacity) if self.capacity is not None else {GPU_NAME: self.gpus}
        allocatable = dict(self.allocatable) if self.allocatable is not None else capacity
        since = instant(self.created if self.ready_since is None else self.ready_since)
        ready = {"type": "Ready", "status": self.ready, "lastTransitionTime": since}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": self.name,
                "uid": self.uid or f"uid-{self.name}",
                "resourceVersion": str(self.version),
                "creationTimestamp": instant(self.created),
                "labels": dict(self.labels),
            }
            | ({"annotations": dict(self.annotations)} if self.annotations else {}),
            "spec": ({"unschedulable": True} if self.cordoned else {}) | {"taints": list(self.taints)},
            "status": {
                "capacity": {"cpu": "64", "memory": "512Gi", "pods": "110"}
                | {name: str(amount) for name, amount in capacity.items()},
                "allocatable": {"cpu": "63500m", "memory": "511Gi", "pods": "110"}
                | {name: str(amount) for name, amount in allocatable.items()},
                "conditions": [ready, *self.conditions],
                "nodeInfo": {"systemUUID": self.machine, "machineID": "", "bootID": ""},
            },
        }


def preempted_event(victim: PodForm, *, by: PodForm, related: bool = True, reason: str = "Preempted") -> Json:
    """kube-scheduler's Event for a preemption; 1.36 omits `related` and names the preemptor only in the message."""
    uid = by.uid or f"uid-{by.name}"
    named = {"kind": "Pod", "namespace": by.namespace, "name": by.name, "uid": uid, "apiVersion": "v1"}
    return {
        "metadata": {"name": f"{victim.name}.17", "namespace": victim.namespace, "uid": f"event-{victim.name}"},
        "involvedObject": {"kind": "Pod", "namespace": victim.namespace, "name": victim.name, "uid": victim.uid},
        "reason": reason,
        "action": "Preempting",
        "type": "Normal",
        "message": f"Preempted by pod {uid} on node {victim.node}",
        "reportingComponent": "default-scheduler",
    } | ({"related": named} if related else {})


def namespace(name: str = "ml", **meta: Mapping[str, str]) -> Json:
    """A namespace with the given `labels` and `annotations`."""
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"} | meta}


def priority_class(name: str, value: int) -> Json:
    """A PriorityClass."""
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}, "value": value}


def as_pod(form: PodForm | Json) -> Pod:
    """As the watch decodes it."""
    return msgspec.convert(form.manifest() if isinstance(form, PodForm) else form, PlaceablePod)


def as_node(form: NodeForm | Json) -> Node:
    """As the watch decodes it."""
    return msgspec.convert(form.manifest() if isinstance(form, NodeForm) else form, Node)


def as_event(manifest: Json) -> Event:
    """As the watch decodes it."""
    return msgspec.convert(manifest, Event)


def as_namespace(manifest: Json) -> Namespace:
    """As the watch decodes it."""
    return msgspec.convert(manifest, Namespace)


def as_class(manifest: Json) -> PriorityClass:
    """As the watch decodes it."""
    return msgspec.convert(manifest, PriorityClass)

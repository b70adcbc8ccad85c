"""Replays a recorded trace: creates, binds, starts and ends each pod at the times in its row.

Whole GPUs are requested as `nvidia.com/gpu`, fractions in thousandths as `example.com/gpu-milli`. A node offers only
one of the two, so no GPU is counted twice.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial

from gputally_sim.api.refusals import run_logged
from gputally_sim.api.registry import Registry
from gputally_sim.documents import Doc, Key
from gputally_sim.instants import HOUR_US, SECOND_US
from gputally_sim.node.kubelet import EXIT, RUN_FOR
from gputally_sim.node.pods import GPU, is_terminal
from gputally_sim.scenarios import workloads
from gputally_sim.scenarios.fleet import NodePool, gpu_node
from gputally_sim.trace.free_capacity import FreeCapacity, Kind
from gputally_sim.trace.trace import DELETED, MILLI_PER_GPU, OUTCOMES, Trace, TraceNode, TracePod

MILLI_GPU = "example.com/gpu-milli"
"""A thousandth of a GPU."""
KEPT_US = HOUR_US
"""Time that a completed pod is kept, as with a Job's ttlSecondsAfterFinished."""

_SCHEDULER = "trace-replay"
_NO_TENANT = "trace"
_JOINING_GPUS = 8
_PRIORITIES = {"guaranteed": 1000, "ls": 800, "burstable": 400, "be": 100}
_PRODUCTS = {
    "A10": "NVIDIA-A10",
    "P100": "Tesla-P100-PCIE-16GB",
    "T4": "Tesla-T4",
    "V100M16": "Tesla-V100-SXM2-16GB",
    "V100M32": "Tesla-V100-SXM2-32GB",
    "": NodePool.product,
}
"""GPU Feature Discovery's product names of the traces' types; other (anonymized) types are kept."""


class Replay:
    """Starts with `begin`; if no node fits a pod, another node joins, as with an autoscaler."""

    def __init__(self, registry: Registry, trace: Trace, nodes: Iterable[TraceNode] = ()) -> None:
        self._registry = registry
        self._trace = trace
        self._nodes = nodes
        self._room = FreeCapacity(registry.store)
        self._joined = 0
        self._ahead = iter(trace.pods)
        self.begun_us: int | None = None
        """Simulated time of the trace's zero; None before `begin`."""

    @property
    def end_us(self) -> int:
        """Time of the last action of the trace; before `begin`, as if it began now."""
        begun_us = self._registry.agenda.now_us if self.begun_us is None else self.begun_us
        return begun_us + self._trace.end_s * SECOND_US

    @property
    def progress(self) -> float:
        """Elapsed fraction of the trace, from 0 to 1."""
        if self.begun_us is None:
            return 0.0
        gone_us = max(0, self._registry.agenda.now_us - self.begun_us)
        return min(1.0, gone_us / max(1, self.end_us - self.begun_us))

    def begin(self) -> None:
        """Start the replay at the next whole second, because API times have second precision."""
        self.begun_us = -(-self._registry.agenda.now_us // SECOND_US) * SECOND_US
        for name in sorted({tier_of(pod) for pod in self._trace.pods} - {""}):
            described = workloads.priority_class(name, _PRIORITIES.get(name, 0), preempts=False)
            self._registry.create("priorityclasses", described)
        for name in sorted({namespace_of(pod) for pod in self._trace.pods} - {"default"}):
            self._registry.create("namespaces", workloads.namespace(name))
        fractional = any(not pod.is_whole for pod in self._trace.pods)
        for index, node in enumerate(self._nodes):  # every second node offers fractions, if any pod requests them
            self._add_node(node.name, node.gpu_type, node.gpus, MILLI_GPU if fractional and index % 2 else GPU)
        self._schedule_next()

    def _schedule_next(self) -> None:
        """Put only the next pod on the agenda, so that memory does not depend on the trace's length."""
        if pod := next(self._ahead, None):
            self._at(pod.submit_s, partial(self._submit, pod))

    def _submit(self, pod: TracePod) -> None:
        self._schedule_next()
        self._registry.create("pods", document(pod), namespace_of(pod))
        if pod.start_s is not None:
            self._at(pod.start_s, partial(self._start, pod))
        elif pod.end_s is not None:
            self._at(pod.end_s, partial(self._registry.delete, "pods", key_of(pod)))

    def _start(self, pod: TracePod) -> None:
        resource, units = request_of(pod)
        node = self._room.find(resource, units, pod.gpu_types) or self._join(pod)
        self._registry.bind(key_of(pod), node)
        self._room.take(node, units)
        if pod.end_s is not None:
            self._at(pod.end_s, partial(self._end, pod, node))

    def _end(self, pod: TracePod, node: str) -> None:
        """Release the capacity, and delete the pod; the kubelet ends completed pods."""
        _, units = request_of(pod)
        self._room.take(node, -units)
        if pod.status == DELETED:
            self._registry.delete("pods", key_of(pod))
        else:
            self._registry.agenda.after(KEPT_US, partial(run_logged, partial(self._delete_ended, pod)))

    def _delete_ended(self, pod: TracePod) -> None:
        """Delete the pod after it is terminal, which takes longer on an unreachable node."""
        stored = self._registry.store.get("pods", key_of(pod))
        if stored and is_terminal(stored.doc):
            self._registry.delete("pods", key_of(pod))
        elif stored:
            self._registry.agenda.after(KEPT_US, partial(run_logged, partial(self._delete_ended, pod)))

    def _join(self, pod: TracePod) -> str:
        name = f"joined-{self._joined}"
        self._joined += 1
        gpus = max(_JOINING_GPUS, -(-pod.gpu_milli // MILLI_PER_GPU))
        resource, _ = request_of(pod)
        self._add_node(name, next(iter(pod.gpu_types), ""), gpus, resource)
        return name

    def _add_node(self, name: str, gpu_type: str, gpus: int, resource: str) -> None:
        units = gpus * MILLI_PER_GPU if resource == MILLI_GPU else gpus
        self._registry.create("nodes", gpu_node(name, _pool(gpu_type, gpus), offered={resource: units}))
        self._room.add(name, Kind(resource, gpu_type), units)

    def _at(self, second: int, step: Callable[[], object]) -> None:
        assert self.begun_us is not None
        self._registry.agenda.at(self.begun_us + second * SECOND_US, partial(run_logged, step))


def document(pod: TracePod) -> Doc:
    """The Pod object; if the pod completes by itself, annotations give its run time to the kubelet."""
    annotations = {}
    if (phase := OUTCOMES[pod.status]) and pod.start_s is not None and pod.end_s is not None:
        annotations = {RUN_FOR: f"{pod.end_s - pod.start_s}s"} | ({EXIT: phase} if phase == "Failed" else {})
    resource, units = request_of(pod)
    limits = {"limits": {resource: str(units)}}
    spec: Doc = {
        "schedulerName": _SCHEDULER,
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "registry.example.org/trace:1", "resources": limits}],
    }
    if tier := tier_of(pod):
        spec["priorityClassName"] = tier
    return {"metadata": {"name": dns_name(pod.id), "annotations": annotations}, "spec": spec}


def request_of(pod: TracePod) -> tuple[str, int]:
    """The requested resource and amount."""
    return (GPU, pod.gpu_milli // MILLI_PER_GPU) if pod.is_whole else (MILLI_GPU, pod.gpu_milli)


def key_of(pod: TracePod) -> Key:
    """Namespace and name of the Pod object."""
    return namespace_of(pod), dns_name(pod.id)


def namespace_of(pod: TracePod) -> str:
    """One per tenant."""
    return dns_name(pod.tenant) or _NO_TENANT


def tier_of(pod: TracePod) -> str:
    """The PriorityClass of its QoS, or ""."""
    return dns_name(pod.qos)


@lru_cache(maxsize=4096)
def dns_name(text: str) -> str:
    """`text` converted to a valid Kubernetes name."""
    return re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")


def _pool(gpu_type: str, gpus: int) -> NodePool:
    name = dns_name(gpu_type)
    product = _PRODUCTS.get(gpu_type, gpu_type)
    return NodePool(
        name=f"{name or 'joined'}-pool",
        count=1,
        gpus=gpus,
        product=product,
        accelerator=dns_name(product),
        memory_mib=16384,
        instance_type=f"{name or 'a100'}-{gpus}",
    )

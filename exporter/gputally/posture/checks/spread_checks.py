"""The check for services whose ready replicas are all on one node."""

from collections import defaultdict
from collections.abc import Iterator

from gputally.frameworks import kubeflow
from gputally.posture.class_claims import Purpose, labelled_purpose, named_purpose
from gputally.posture.classes import class_named
from gputally.posture.finding import ObjectName, Remark
from gputally.posture.gpu_workloads import gpu_pods, namespace_of, owner_of
from gputally.posture.objects import PosturePod
from gputally.posture.quotas import capacity_of
from gputally.posture.state import PostureState

_RUN_TO_COMPLETION = ("Job", kubeflow.PYTORCH_JOB)


def replicas_on_one_node(state: PostureState) -> Iterator[Remark]:
    """Serving workloads with several ready pods, all on one node, although another node has GPUs."""
    nodes = state.found.nodes
    if nodes is not None and capacity_of(nodes, state.rules).nodes < 2:  # noqa: PLR2004 - there is nowhere else
        return
    for workload, pods in sorted(_ready_pods(state).items()):
        used = {each.spec.node_name for each in pods}
        if len(pods) > 1 and len(used) == 1:
            yield Remark(
                workload,
                f"all {len(pods)} ready replicas are on node {used.pop()}",
                "one failure, drain or preemption on this node stops the whole service",
                "add topologySpreadConstraints with topologyKey kubernetes.io/hostname, or a podAntiAffinity",
            )


def _ready_pods(state: PostureState) -> dict[ObjectName, list[PosturePod]]:
    """Ready pods that serve users, by what created them."""
    found = defaultdict[ObjectName, list[PosturePod]](list)
    for pod in gpu_pods(state.found, state.rules) or ():
        kind, name = owner_of(pod)
        if kind not in ("Pod", *_RUN_TO_COMPLETION) and _is_ready(pod) and _serves(pod, state):
            found[ObjectName(kind, namespace_of(pod.metadata), name)].append(pod)
    return found


def _is_ready(pod: PosturePod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions or ())


def _serves(pod: PosturePod, state: PostureState) -> bool:
    """By its label, else by its class."""
    if purpose := labelled_purpose(pod.metadata.labels or {}):
        return purpose is Purpose.SERVING
    found = class_named(state.classes, pod.spec.priority_class_name)
    return found is not None and named_purpose(found) is Purpose.SERVING

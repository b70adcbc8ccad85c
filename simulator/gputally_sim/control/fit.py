"""Whether a pod fits on a node: the scheduler's filters as pure functions."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gputally_sim.documents import Doc, Key, key_of, labels_of, matches, uid_of
from gputally_sim.node.pods import PODS, condition, is_terminating, node_of, scheduled_requests
from gputally_sim.quantities import amount_of

_encode = msgspec.json.Encoder().encode
_NOT_TOLERATED = frozenset({"NoSchedule", "NoExecute"})
_DECISIVE = ("priority", "preemptionPolicy", "nodeSelector", "tolerations", "resourceClaims")
_TAINTS_OF_STATUS = {"False": "node.kubernetes.io/not-ready", "Unknown": "node.kubernetes.io/unreachable"}


@dataclass(frozen=True)
class PodNeeds:
    """The scheduling properties of a pod; `requests` has all resources, in the units of `amount_of`."""

    uid: str
    key: Key
    priority: int
    created: tuple[str, str]
    started: str
    node: str
    requests: Mapping[str, int]
    spec: Doc
    labels: Mapping[str, str]
    terminating: bool
    preempted: bool
    nominated_node: str
    alike: bytes
    """Equal for pods that are equivalent for scheduling."""


class NodeState:
    """A node with the pods that use its resources and the pods nominated to it, by uid."""

    def __init__(self, doc: Doc, pods: Mapping[str, PodNeeds] | None = None) -> None:
        self.pods: dict[str, PodNeeds] = {}
        self.nominated: dict[str, PodNeeds] = {}
        self.held: Counter[str] = Counter()
        """The total requests of the pods, updated incrementally."""
        for pod in (pods or {}).values():
            self.place(pod)
        self.update(doc)

    def place(self, pod: PodNeeds) -> None:
        """Add a pod to the node."""
        self.remove(pod.uid)
        self.pods[pod.uid] = pod
        self.held.update(pod.requests)

    def remove(self, uid: str) -> None:
        """Remove a pod and its nomination, if present."""
        self.nominated.pop(uid, None)
        if former := self.pods.pop(uid, None):
            self.held.subtract(former.requests)

    def update(self, doc: Doc) -> None:
        """Update from the Node object."""
        self.name: str = doc["metadata"]["name"]
        self.labels = labels_of(doc)
        self.unschedulable = bool(doc.get("spec", {}).get("unschedulable"))
        self.taints = [taint for taint in _taints(doc) if taint.get("effect") in _NOT_TOLERATED]
        offered = doc.get("status", {}).get("allocatable", {})
        self.allocatable = {name: amount_of(name, quantity) for name, quantity in offered.items()}


@dataclass(frozen=True)
class Misfit:
    """Why a pod does not fit on a node; `resolvable` if removing pods could help."""

    reasons: tuple[str, ...]
    resolvable: bool = False


def needs_of(pod: Doc, former: PodNeeds | None = None) -> PodNeeds:
    """The scheduling properties of a pod; values derived from the spec are reused from `former` if it is unchanged."""
    spec = pod["spec"]
    known = former if former and former.spec is spec else None
    requests = known.requests if known else scheduled_requests(spec)
    target = condition(pod, "DisruptionTarget") or {}
    return PodNeeds(
        uid=uid_of(pod),
        key=key_of(pod),
        priority=spec.get("priority", 0),
        created=(pod["metadata"]["creationTimestamp"], uid_of(pod)),
        started=pod["status"].get("startTime") or pod["metadata"]["creationTimestamp"],
        node=node_of(pod),
        requests=requests,
        spec=spec,
        labels=labels_of(pod),
        terminating=is_terminating(pod),
        preempted=target.get("status") == "True" and target.get("reason") == "PreemptionByScheduler",
        nominated_node=pod["status"].get("nominatedNodeName", ""),
        alike=known.alike if known else _encode([requests, *(spec.get(name) for name in _DECISIVE)]),
    )


def misfit(pod: PodNeeds, node: NodeState, *, without: Collection[str] = ()) -> Misfit | None:
    """The first filter's reason why `pod` does not fit on `node`; None if it fits.

    `without`: uids of pods to ignore, to simulate their removal.
    """
    if node.unschedulable:
        return Misfit(("node(s) were unschedulable",))
    if taint := untolerated_taint(pod, node):
        return Misfit((f"node(s) had untolerated taint {{{taint}}}",))
    if (selector := pod.spec.get("nodeSelector")) and not matches(selector, node.labels):
        return Misfit(("node(s) didn't match Pod's node affinity/selector",))
    if pod.spec.get("resourceClaims"):  # no node has devices for claims
        return Misfit(("cannot allocate all claims",))
    return _shortage(pod, node, without)


def untolerated_taint(pod: PodNeeds, node: NodeState) -> str:
    """The first untolerated taint as `key: value`, or ""."""
    tolerations = pod.spec.get("tolerations") or ()
    for taint in node.taints:
        if not any(_tolerates(each, taint) for each in tolerations):
            return f"{taint['key']}: {taint.get('value', '')}"
    return ""


def fit_message(misfits: Sequence[Misfit]) -> str:
    """`0/N nodes are available: ...`, with counts by reason. Source: kube-scheduler framework/types.go FitError."""
    counts = Counter(reason for each in misfits for reason in each.reasons)
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{len(misfits)} nodes are available: {listed}."


def is_extended(resource: str) -> bool:
    """Whether devices are counted, not CPU, memory, storage or pods."""
    return "/" in resource


def free(node: NodeState, resource: str) -> int:
    """The free amount of a resource on the node."""
    return node.allocatable.get(resource, 0) - node.held[resource]


def held(pods: Iterable[PodNeeds], resource: str) -> int:
    """The total request of `pods` for a resource."""
    return sum(pod.requests.get(resource, 0) for pod in pods)


def _shortage(pod: PodNeeds, node: NodeState, without: Collection[str]) -> Misfit | None:
    reasons = []
    resolvable = True
    for resource, wanted in sorted(pod.requests.items()):
        if not is_extended(resource) and resource not in node.allocatable:
            continue  # nodes of tests state what matters there
        freed = held((node.pods[uid] for uid in without), resource) if without else 0
        if wanted > free(node, resource) + freed - _claimed(pod, node, resource):
            reasons.append("Too many pods" if resource == PODS else f"Insufficient {resource}")
            resolvable = resolvable and wanted <= node.allocatable.get(resource, 0)
    return Misfit(tuple(reasons), resolvable) if reasons else None


def _claimed(pod: PodNeeds, node: NodeState, resource: str) -> int:
    """The amount claimed by pods nominated to the node, except those with lower priority than `pod`."""
    if not node.nominated:
        return 0
    rivals = (each for each in node.nominated.values() if each.uid != pod.uid and each.priority >= pod.priority)
    return held(rivals, resource)


def _taints(node: Doc) -> list[Doc]:
    """The node's taints, including the one implied by its Ready condition."""
    taints = list(node.get("spec", {}).get("taints") or ())
    status = (condition(node, "Ready") or {"status": "False"})["status"]
    if key := _TAINTS_OF_STATUS.get(status):
        taints.append({"key": key, "effect": "NoSchedule"})
    return taints


def _tolerates(toleration: Doc, taint: Doc) -> bool:
    if toleration.get("effect", taint["effect"]) != taint["effect"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return bool(toleration.get("key", taint["key"]) == taint["key"])
    same_key = toleration.get("key") == taint["key"]
    return bool(same_key and toleration.get("value", "") == taint.get("value", ""))

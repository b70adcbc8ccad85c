"""Whether a pod fits a node: the scheduler's filters as pure functions of what is known of pods and nodes."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gputally.sim.documents import Doc, Key, key_of, labels_of, matches, uid_of
from gputally.sim.pods import condition, effective_requests, is_terminating, node_of

_NOT_TOLERATED = frozenset({"NoSchedule", "NoExecute"})
_TAINTS_OF_STATUS = {"False": "node.kubernetes.io/not-ready", "Unknown": "node.kubernetes.io/unreachable"}


@dataclass(frozen=True)
class PodNeeds:
    """What scheduling asks of a pod; `requests` are extended resources only."""

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


@dataclass
class NodeState:
    """A node with the pods that hold its resources and those it is being cleared for, by uid."""

    doc: Doc
    pods: dict[str, PodNeeds] = field(default_factory=dict)
    nominated: dict[str, PodNeeds] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The node's name."""
        name: str = self.doc["metadata"]["name"]
        return name


@dataclass(frozen=True)
class Misfit:
    """Why a node does not take a pod; `resolvable` tells that fewer pods on it could change that."""

    reasons: tuple[str, ...]
    resolvable: bool = False


def needs_of(pod: Doc) -> PodNeeds:
    """Read a pod for scheduling."""
    target = condition(pod, "DisruptionTarget") or {}
    return PodNeeds(
        uid=uid_of(pod),
        key=key_of(pod),
        priority=pod["spec"].get("priority", 0),
        created=(pod["metadata"]["creationTimestamp"], uid_of(pod)),
        started=pod["status"].get("startTime") or pod["metadata"]["creationTimestamp"],
        node=node_of(pod),
        requests=effective_requests(pod["spec"]),
        spec=pod["spec"],
        labels=labels_of(pod),
        terminating=is_terminating(pod),
        preempted=target.get("status") == "True" and target.get("reason") == "PreemptionByScheduler",
        nominated_node=pod["status"].get("nominatedNodeName", ""),
    )


def misfit(pod: PodNeeds, node: NodeState, *, without: Collection[str] = ()) -> Misfit | None:
    """Why `pod` cannot go to `node`, as the first filter to object says it; None when it fits.

    `without`: uids of pods to leave out of account, to ask what their going would change.
    """
    if node.doc.get("spec", {}).get("unschedulable"):
        return Misfit(("node(s) were unschedulable",))
    if taint := untolerated_taint(pod, node):
        return Misfit((f"node(s) had untolerated taint {{{taint}}}",))
    if not matches(pod.spec.get("nodeSelector") or {}, labels_of(node.doc)):
        return Misfit(("node(s) didn't match Pod's node affinity/selector",))
    return _shortage(pod, node, without)


def untolerated_taint(pod: PodNeeds, node: NodeState) -> str:
    """The first taint the pod does not tolerate, as `key: value`; "" when there is none."""
    tolerations = pod.spec.get("tolerations") or ()
    for taint in _taints(node.doc):
        if taint["effect"] in _NOT_TOLERATED and not any(_tolerates(each, taint) for each in tolerations):
            return f"{taint['key']}: {taint.get('value', '')}"
    return ""


def fit_message(misfits: Sequence[Misfit]) -> str:
    """`0/N nodes are available: ...`, counted by reason. Source: kube-scheduler framework/types.go FitError."""
    counts = Counter(reason for each in misfits for reason in each.reasons)
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{len(misfits)} nodes are available: {listed}."


def free(node: NodeState, resource: str) -> int:
    """What is allocatable there and held by no pod."""
    return allocatable(node, resource) - held(node.pods.values(), resource)


def allocatable(node: NodeState, resource: str) -> int:
    """What the node offers; 0 for a resource it does not have."""
    return int(node.doc.get("status", {}).get("allocatable", {}).get(resource, 0))


def held(pods: Iterable[PodNeeds], resource: str) -> int:
    """What `pods` request together."""
    return sum(pod.requests.get(resource, 0) for pod in pods)


def _shortage(pod: PodNeeds, node: NodeState, without: Collection[str]) -> Misfit | None:
    """Pods nominated to the node count as if they were there, unless `pod` is more important."""
    rivals = [each for each in node.nominated.values() if each.uid != pod.uid and each.priority >= pod.priority]
    holders = [each for each in node.pods.values() if each.uid not in without]
    reasons = []
    resolvable = True
    for resource, wanted in sorted(pod.requests.items()):
        offered = allocatable(node, resource)
        if wanted > offered - held(holders, resource) - held(rivals, resource):
            reasons.append(f"Insufficient {resource}")
            resolvable = resolvable and wanted <= offered
    return Misfit(tuple(reasons), resolvable) if reasons else None


def _taints(node: Doc) -> list[Doc]:
    """The taints on the node and the one its Ready condition amounts to."""
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

"""Whether a pod fits a node: the scheduler's filters as pure functions of what is known of pods and nodes."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gputally_sim.documents import Doc, Key, key_of, labels_of, matches, uid_of
from gputally_sim.node.pods import condition, effective_requests, is_terminating, node_of

_encode = msgspec.json.Encoder().encode
_NOT_TOLERATED = frozenset({"NoSchedule", "NoExecute"})
_DECISIVE = ("priority", "preemptionPolicy", "nodeSelector", "tolerations")
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
    alike: bytes
    """Equal for pods between which scheduling makes no difference."""


class NodeState:
    """A node with the pods that hold its resources and those it is being cleared for, by uid."""

    def __init__(self, doc: Doc, pods: Mapping[str, PodNeeds] | None = None) -> None:
        self.pods: dict[str, PodNeeds] = {}
        self.nominated: dict[str, PodNeeds] = {}
        self.held: Counter[str] = Counter()
        """What the pods request together, kept as they come and go."""
        for pod in (pods or {}).values():
            self.place(pod)
        self.update(doc)

    def place(self, pod: PodNeeds) -> None:
        """The pod holds what it requests from now on."""
        self.lift(pod.uid)
        self.pods[pod.uid] = pod
        self.held.update(pod.requests)

    def lift(self, uid: str) -> None:
        """The pod holds nothing here and has no claim any longer, if it ever did."""
        self.nominated.pop(uid, None)
        if former := self.pods.pop(uid, None):
            self.held.subtract(former.requests)

    def update(self, doc: Doc) -> None:
        """Read the node anew."""
        self.name: str = doc["metadata"]["name"]
        self.labels = labels_of(doc)
        self.unschedulable = bool(doc.get("spec", {}).get("unschedulable"))
        self.taints = [taint for taint in _taints(doc) if taint.get("effect") in _NOT_TOLERATED]
        offered = doc.get("status", {}).get("allocatable", {})
        self.allocatable = {name: _whole(count) for name, count in offered.items() if "/" in name}


@dataclass(frozen=True)
class Misfit:
    """Why a node does not take a pod; `resolvable` tells that fewer pods on it could change that."""

    reasons: tuple[str, ...]
    resolvable: bool = False


def needs_of(pod: Doc, former: PodNeeds | None = None) -> PodNeeds:
    """Read a pod for scheduling; what follows from its spec alone is taken from `former` while the spec is the same."""
    spec = pod["spec"]
    known = former if former and former.spec is spec else None
    requests = known.requests if known else effective_requests(spec)
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
    """Why `pod` cannot go to `node`, as the first filter to object says it; None when it fits.

    `without`: uids of pods to leave out of account, to ask what their going would change.
    """
    if node.unschedulable:
        return Misfit(("node(s) were unschedulable",))
    if taint := untolerated_taint(pod, node):
        return Misfit((f"node(s) had untolerated taint {{{taint}}}",))
    if (selector := pod.spec.get("nodeSelector")) and not matches(selector, node.labels):
        return Misfit(("node(s) didn't match Pod's node affinity/selector",))
    return _shortage(pod, node, without)


def untolerated_taint(pod: PodNeeds, node: NodeState) -> str:
    """The first taint the pod does not tolerate, as `key: value`; "" when there is none."""
    tolerations = pod.spec.get("tolerations") or ()
    for taint in node.taints:
        if not any(_tolerates(each, taint) for each in tolerations):
            return f"{taint['key']}: {taint.get('value', '')}"
    return ""


def fit_message(misfits: Sequence[Misfit]) -> str:
    """`0/N nodes are available: ...`, counted by reason. Source: kube-scheduler framework/types.go FitError."""
    counts = Counter(reason for each in misfits for reason in each.reasons)
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{len(misfits)} nodes are available: {listed}."


def free(node: NodeState, resource: str) -> int:
    """What is allocatable there and held by no pod."""
    return node.allocatable.get(resource, 0) - node.held[resource]


def held(pods: Iterable[PodNeeds], resource: str) -> int:
    """What `pods` request together."""
    return sum(pod.requests.get(resource, 0) for pod in pods)


def _shortage(pod: PodNeeds, node: NodeState, without: Collection[str]) -> Misfit | None:
    reasons = []
    resolvable = True
    for resource, wanted in sorted(pod.requests.items()):
        gone = held((node.pods[uid] for uid in without), resource) if without else 0
        if wanted > free(node, resource) + gone - _claimed(pod, node, resource):
            reasons.append(f"Insufficient {resource}")
            resolvable = resolvable and wanted <= node.allocatable.get(resource, 0)
    return Misfit(tuple(reasons), resolvable) if reasons else None


def _claimed(pod: PodNeeds, node: NodeState, resource: str) -> int:
    """Pods nominated to the node count as if they were there, unless `pod` is more important."""
    if not node.nominated:
        return 0
    rivals = (each for each in node.nominated.values() if each.uid != pod.uid and each.priority >= pod.priority)
    return held(rivals, resource)


def _whole(quantity: str) -> int:
    """A count of devices; a node that states none that can be read has none."""
    return int(quantity) if str(quantity).isdigit() else 0


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

"""Generated states of a small cluster before which a pod waits, as manifests."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from tests.cluster.manifests import GPU, Json, namespace, priority_class

ORACLE: Final = "oracle"
"""The label and the taint that keep states apart in one cluster."""
SERVING: Final = "serving"
"""The label of pods that serve users."""
VALUES: Final = tuple(range(10, 210, 10))
"""Priorities, each with a class that preempts and one that never does."""
GUARD: Final = "guard"
"""The label that budgets select."""
NEVER: Final = "-never"
GIB: Final = 2**30
TAINTS: Final = (
    {"key": "team", "value": "a", "effect": "NoSchedule"},
    {"key": "team", "value": "b", "effect": "NoSchedule"},
    {"key": "spot", "effect": "NoSchedule"},
    {"key": "maintenance", "value": "soon", "effect": "NoExecute"},
    {"key": "busy", "effect": "PreferNoSchedule"},
)
TOLERATIONS: Final = (
    {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"},
    {"key": "team", "operator": "Exists"},
    {"key": "spot", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "maintenance", "value": "soon"},
    {"key": "spot", "value": "wrong"},
)
REQUIREMENTS: Final = (
    {"key": "pool", "operator": "In", "values": ["a", "b"]},
    {"key": "pool", "operator": "NotIn", "values": ["a"]},
    {"key": "fast", "operator": "Exists"},
    {"key": "fast", "operator": "DoesNotExist"},
    {"key": "generation", "operator": "Gt", "values": ["2"]},
    {"key": "generation", "operator": "Lt", "values": ["3"]},
)


CPUS: Final = ("1", "500m", "4", "9", "12")
CONDITIONS: Final = (
    (),
    (("PodResizePending", "Deferred"),),
    (("PodResizePending", "Infeasible"),),
    (("PodResizePending", "Infeasible"), ("PodResizeInProgress", "")),
    (("PodResizeInProgress", ""),),
)
"""What a kubelet says of a resize: types and reasons."""


@dataclass(frozen=True)
class State:
    """One cluster: nodes, pods on them, of which some are stopping, and a pod that waits; all by manifest.

    `quota` is the number of GPUs that the namespace's quota admits; None without one. `budgets` are
    PodDisruptionBudgets: the value of GUARD that each selects, and how many of its pods must stay.
    """

    name: str
    nodes: tuple[Json, ...]
    holders: tuple[Json, ...]
    pod: Json
    stopping: frozenset[str] = frozenset()
    quota: int | None = None
    budgets: tuple[tuple[str, int], ...] = ()

    def renamed(self, name: str) -> "State":
        """The same state beside this one, in a namespace and with nodes of its own."""
        nodes = [deepcopy(node) for node in self.nodes]
        holders, pod = [deepcopy(each) for each in self.holders], deepcopy(self.pod)
        for node in nodes:
            node["metadata"]["name"] = new_name(node["metadata"]["name"], self.name, name)
            node["metadata"]["labels"][ORACLE] = name
            node["spec"]["taints"][0]["value"] = name
        for each in (*holders, pod):
            each["metadata"]["namespace"] = name
        for each in holders:
            each["spec"]["nodeName"] = new_name(each["spec"]["nodeName"], self.name, name)
        pod["spec"]["nodeSelector"][ORACLE] = name
        pod["spec"]["tolerations"][0]["value"] = name
        return replace(self, name=name, nodes=tuple(nodes), holders=tuple(holders), pod=pod)

    def copy(self) -> "State":
        """A copy of which the manifests can be changed."""
        return self.renamed(self.name)


def new_name(node: str, old: str, new: str) -> str:
    return f"{new}-{node.removeprefix(f'{old}-')}"


def classes() -> Iterator[Json]:
    """The PriorityClasses of all states."""
    for value in VALUES:
        yield priority_class(class_name(value), value)
        yield priority_class(class_name(value, preempts=False), value, preempts=False)


def class_name(value: int, *, preempts: bool = True) -> str:
    return f"{ORACLE}-{value}{'' if preempts else NEVER}"


def priority_of(pod: Json) -> int:
    """The value of its PriorityClass, which its name contains."""
    return int(pod["spec"]["priorityClassName"].split("-")[1])


def state(chance: Random, name: str) -> State:
    """Any state, or one of three that chance alone makes too seldom."""
    return chance.choice((anything, anything, anything, split, stopping, resizing))(chance, name)


def anything(chance: Random, name: str) -> State:
    nodes = [node(chance, f"{name}-n{index}", name) for index in range(chance.choice((1, 2, 2, 3)))]
    holders = [each for index, each in enumerate(nodes) for each in holders_on(chance, each, index, name)]
    named = [each["metadata"]["name"] for each in holders]
    return State(
        name=name,
        nodes=tuple(nodes),
        holders=tuple(holders),
        pod=waiting_pod(chance, name),
        stopping=frozenset(chance.sample(named, 1) if named and chance.random() < 0.2 else ()),
        quota=chance.choice((0, 1, 3)) if chance.random() < 0.08 else None,
    )


def split(chance: Random, name: str) -> State:
    """Important pods leave a part of each node."""
    nodes = [plain_node(f"{name}-n{index}", name, gpus=4) for index in range(chance.choice((2, 3)))]
    holders = [
        holder(f"holder-{index}", each, gpus=chance.choice((1, 2, 3)), priority=chance.choice(VALUES[8:]))
        for index, each in enumerate(nodes)
    ]
    pod = plain_pod(chance, name, gpus=chance.choice((3, 4)), priority=chance.choice(VALUES[:10]))
    return State(name=name, nodes=tuple(nodes), holders=tuple(holders), pod=pod)


def stopping(chance: Random, name: str) -> State:
    """Some of the pods that fill the nodes are stopping."""
    nodes = [plain_node(f"{name}-n{index}", name, gpus=4) for index in range(chance.choice((1, 2)))]
    holders = [
        holder(f"holder-{index}-{value}", each, gpus=chance.choice((1, 2)), priority=value)
        for index, each in enumerate(nodes)
        for value in chance.sample(VALUES, 3)
    ]
    names = [each["metadata"]["name"] for each in holders]
    pod = plain_pod(chance, name, gpus=chance.choice((1, 2, 3)), priority=chance.choice(VALUES))
    picked = frozenset(chance.sample(names, chance.choice((1, 2))))
    return State(name=name, nodes=tuple(nodes), holders=tuple(holders), pod=pod, stopping=picked)


def resizing(chance: Random, name: str) -> State:
    """Pods that are resized in place hold CPUs that the waiting pod needs."""
    nodes = [plain_node(f"{name}-n{index}", name, gpus=4) for index in range(chance.choice((1, 2)))]
    holders = [
        resized(chance, holder(f"holder-{index}-{value}", each, gpus=1, priority=value))
        for index, each in enumerate(nodes)
        for value in chance.sample(VALUES, chance.choice((1, 2)))
    ]
    pod = plain_pod(chance, name, gpus=1, priority=chance.choice(VALUES))
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = chance.choice(("2", "6", "10"))
    return State(name=name, nodes=tuple(nodes), holders=tuple(holders), pod=pod)


def resized(chance: Random, pod: Json) -> Json:
    """The pod in any state of a resize of its container or as a whole, with the status that its kubelet writes."""
    spec, allocated, actual = (chance.choice(CPUS) for _ in range(3))
    requests = pod["spec"]["containers"][0]["resources"]["requests"]
    status = {
        "name": "main",
        "image": "",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "allocatedResources": requests | {"cpu": allocated},
        "resources": {"requests": requests | {"cpu": actual}},
    }
    requests["cpu"] = spec
    conditions = [{"type": kind, "status": "True", "reason": reason} for kind, reason in chance.choice(CONDITIONS)]
    pod["status"] = {"phase": "Running", "conditions": conditions, "containerStatuses": [status]}
    if chance.random() < 0.25:
        pod["spec"]["resources"] = {"requests": {"cpu": chance.choice(("12", "16"))}}
        pod["status"] |= {
            "allocatedResources": requests | {"cpu": chance.choice(("12", "14"))},
            "resources": {"requests": requests | {"cpu": chance.choice(("12", "13"))}},
        }
    return pod


def plain_node(name: str, owner: str, *, gpus: int) -> Json:
    """A node that accepts all pods of its state."""
    offered = {GPU: str(gpus), "cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    return shaped_node(name, owner, offered, labels={}, taints=[])


def plain_pod(chance: Random, owner: str, *, gpus: int, priority: int) -> Json:
    """A pod that accepts all nodes of its state."""
    return pod(
        "waiting",
        owner,
        requests(gpus=gpus, cpu="1", memory="1Gi"),
        labels={},
        priorityClassName=class_name(priority, preempts=chance.random() < 0.6),
        nodeSelector={ORACLE: owner},
        tolerations=[{"key": ORACLE, "operator": "Equal", "value": owner, "effect": "NoSchedule"}],
    )


def holder(name: str, on: Json, *, gpus: int, priority: int, labels: dict[str, str] | None = None) -> Json:
    owner = on["metadata"]["labels"][ORACLE]
    return pod(
        name,
        owner,
        requests(gpus=gpus, cpu="1", memory="1Gi"),
        labels=labels or {},
        nodeName=on["metadata"]["name"],
        priorityClassName=class_name(priority),
        tolerations=[{"operator": "Exists"}],
    )


def node(chance: Random, name: str, owner: str) -> Json:
    taints: list[Json] = []
    if chance.random() < 0.3:
        drawn = chance.sample(TAINTS, chance.choice((1, 1, 2)))
        taints += {str(taint["key"]): taint for taint in drawn}.values()  # a key and an effect may occur once
    labels = {"pool": chance.choice("ab")} if chance.random() < 0.8 else {}
    labels |= {"fast": ""} if chance.random() < 0.5 else {}
    labels |= {"generation": chance.choice("1234x")} if chance.random() < 0.8 else {}
    resources = {
        GPU: str(chance.choice((*(2, 4, 4, 8, 8) * 3, 0))),
        "cpu": str(chance.choice((4, 8, 16))),
        "memory": f"{chance.choice((16, 32, 64))}Gi",
        "ephemeral-storage": f"{chance.choice((20, 200))}Gi",
        "pods": str(chance.choice((2, 4, 110, 110))),
    }
    made = shaped_node(name, owner, resources, labels=labels, taints=taints)
    if chance.random() < 0.12:
        made["spec"]["unschedulable"] = True
    return made


def shaped_node(name: str, owner: str, offered: Json, *, labels: Json, taints: Sequence[Json]) -> Json:
    own = {"key": ORACLE, "value": owner, "effect": "NoSchedule"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ORACLE: owner, "kubernetes.io/hostname": name} | labels},
        "spec": {"taints": [own, *taints]},
        "status": {
            "capacity": offered,
            "allocatable": offered,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Simulated", "message": ""}],
        },
    }


def holders_on(chance: Random, on: Json, index: int, owner: str) -> Iterator[Json]:
    """Pods within what the node offers, unless resized.

    They have different priorities, since the scheduler has no order among equal ones.
    """
    offered = on["status"]["allocatable"]
    gpus, cpu, pods = int(offered[GPU]), int(offered["cpu"]), int(offered["pods"])
    how_full = chance.choice((0, 0.5, 1, 1, 1))
    values = chance.sample(VALUES, min(8, pods))
    for number, value in enumerate(values):
        if chance.random() > how_full + 0.1 or cpu < 1:
            continue
        wanted = min(chance.choice((0, 1, 1, 2, 3, 4)), gpus)
        cpus = min(chance.choice((1, 1, 2, 4)), cpu)
        gpus, cpu = gpus - wanted, cpu - cpus
        made = pod(
            f"holder-{index}-{number}",
            owner,
            requests(gpus=wanted, cpu=f"{cpus}", memory=f"{chance.choice((1, 2))}Gi"),
            nodeName=on["metadata"]["name"],
            priorityClassName=class_name(value),
            tolerations=[{"operator": "Exists"}],
            labels=chance.choice(({}, {SERVING: "yes"})),
        )
        yield resized(chance, made) if chance.random() < 0.1 else made


def waiting_pod(chance: Random, owner: str) -> Json:
    needs = requests(
        gpus=chance.choice((1, 1, 2, 2, 3, 4, 8)),
        cpu=chance.choice(("500m", "1", "1", "2", "3", "6")),
        memory=chance.choice(("1Gi", "1Gi", "4Gi", "16Gi")),
    )
    if chance.random() < 0.15:
        needs["ephemeral-storage"] = chance.choice(("10Gi", "100Gi"))
    made = pod(
        "waiting",
        owner,
        needs,
        priorityClassName=class_name(chance.choice(VALUES), preempts=chance.random() < 0.6),
        nodeSelector={ORACLE: owner} | ({"pool": chance.choice("ab")} if chance.random() < 0.25 else {}),
        tolerations=[
            {"key": ORACLE, "operator": "Equal", "value": owner, "effect": "NoSchedule"},
            *chance.sample(TOLERATIONS, chance.choice((0, 0, 1, 2))),
        ],
        labels=chance.choice(({}, {}, {SERVING: "yes"})),
    )
    if chance.random() < 0.25:
        terms = [
            {"matchExpressions": chance.sample(REQUIREMENTS, chance.choice((1, 1, 2)))}
            for _ in range(chance.choice((1, 1, 2)))
        ]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        made["spec"]["affinity"] = {"nodeAffinity": required}
    if chance.random() < 0.07:
        made["spec"]["schedulingGates"] = [{"name": "example.com/wait"}, {"name": "example.com/check"}]
    return made


def requests(*, gpus: int, cpu: str, memory: str) -> dict[str, str]:
    return ({GPU: str(gpus)} if gpus else {}) | {"cpu": cpu, "memory": memory}


def pod(name: str, owner: str, needs: dict[str, str], *, labels: dict[str, str], **spec: object) -> Json:
    """A pod that is gone at once when it is deleted: no kubelet runs here."""
    gpus = {GPU: needs[GPU]} if GPU in needs else {}
    container = {"name": "main", "image": "registry.example/train:1", "resources": {"requests": needs, "limits": gpus}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": owner, "labels": {ORACLE: "yes"} | labels},
        "spec": {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0} | spec,
    }


def own_namespace(name: str) -> Json:
    return namespace(name)

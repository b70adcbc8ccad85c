"""Sums of allocations by tier, tenant, job, node or model."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from gputally.model.api.allocations import AllocationsDocument, PodAllocation

PENDING: Final = "pending"
_OVERCOMMITTED: Final = "overcommitted"
Key = Callable[[PodAllocation], str]


def _job(pod: PodAllocation) -> str:
    return f"{pod.namespace}/{pod.job}"


BY: Final[Mapping[str, Key]] = {
    "tier": lambda pod: pod.tier,
    "tenant": lambda pod: pod.tenant,
    "job": _job,
    "node": lambda pod: pod.node,
    "namespace": lambda pod: pod.namespace,
    "model": lambda pod: pod.gpu_model,
    "pod": lambda pod: f"{pod.namespace}/{pod.pod}",
}
"""How pods can be grouped; on a node, nothing is pending."""


@dataclass(kw_only=True)
class Group:
    """Sums over the pods of one group: GPUs by state, and their cost per hour.

    `unpriced` are GPUs without a price, which the cost does not include. `offered` are the GPUs of a node. `nodes` are
    those of the pods, and `needed` how few would hold the pods of a job, if that is known.
    """

    name: str
    pods: int = 0
    gpus: dict[str, float] = field(default_factory=dict)
    cost: Decimal = Decimal(0)
    unpriced: float = 0
    offered: float | None = None
    nodes: set[str] = field(default_factory=set)
    needed: int | None = None

    @property
    def held(self) -> float:
        """GPUs that are allocated, in any state."""
        return sum(gpus for state, gpus in self.gpus.items() if state != PENDING)

    @property
    def pending(self) -> float:
        """GPUs that pending pods request."""
        return self.gpus.get(PENDING, 0)

    def add(self, pod: PodAllocation) -> None:
        """Add one pod."""
        self.pods += 1
        self.nodes.update([pod.node] if pod.node else ())
        self.gpus[pod.state] = self.gpus.get(pod.state, 0) + pod.gpus
        if pod.cost_per_hour is not None:
            self.cost += Decimal(pod.cost_per_hour)
        elif pod.state != PENDING:
            self.unpriced += pod.gpus


def groups(pods: Iterable[PodAllocation], *, by: str, offered: Mapping[str, float] | None = None) -> list[Group]:
    """The groups with the most GPUs first, and all that have `offered` GPUs.

    Pods without a value, such as a node, are left out.
    """
    found = {name: Group(name=name, offered=gpus) for name, gpus in (offered or {}).items()}
    for pod in pods:
        if name := BY[by](pod):
            found.setdefault(name, Group(name=name)).add(pod)
    return sorted(found.values(), key=lambda group: (-group.held, -group.pending, group.name))


def jobs(document: AllocationsDocument) -> list[Group]:
    """The jobs, with the nodes that they need."""
    found, needed = groups(document.pods, by="job"), defaultdict[str, list[int]](list)
    for each in document.jobs:
        needed[f"{each.namespace}/{each.job}"].append(each.nodes_needed)
    for group in found:
        if len(of_job := needed[group.name]) == 1:  # jobs of several kinds may have one name
            [group.needed] = of_job
    return found


def total(document: AllocationsDocument) -> Group:
    """All pods."""
    everything = Group(name="total")
    for pod in document.pods:
        everything.add(pod)
    return everything


def offered(document: AllocationsDocument) -> dict[str, float]:
    """The GPUs of each node."""
    return {
        node.node: sum(gpus for state, gpus in node.gpus.items() if state != _OVERCOMMITTED)
        for node in document.nodes or ()
    }


def capacity(document: AllocationsDocument) -> dict[str, float] | None:
    """GPUs by state over all nodes; None if the document has no nodes."""
    if document.nodes is None:
        return None
    found: dict[str, float] = {}
    for node in document.nodes:
        for state, gpus in node.gpus.items():
            found[state] = found.get(state, 0) + gpus
    return found

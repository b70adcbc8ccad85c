"""Pods that hold GPUs or wait for them, and the nodes that offer them, now."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.jobs.cost import JobCostsNow
from gputally.accounting.nodes.facts import is_stand_in
from gputally.accounting.pods.index import PendingGroup
from gputally.accounting.waiting.packing import Job, JobNodes
from gputally.accounting.watched.unaccounted_pods import NONE_UNACCOUNTED, UnaccountedNow
from gputally.model.node_record import CapacitySlice, LabelConflict
from gputally.model.pod_record import PodRecord

if TYPE_CHECKING:
    from gputally.model.price import Price

PENDING = "pending"
"""The state of a pod without a node; else it is one of `allocation.State`."""


ANY = "any"
"""The GPU model of a pending pod that requires none."""


class ActivePod(Struct, frozen=True, kw_only=True, gc=False):
    """A pod that holds GPUs, or waits for them in state `pending`.

    `quantity` is µGPU. `since_us` is the creation of a pending pod, and the start of the current state of others.
    `gpu_model` of a pending pod is the one that it requires, `any` for none. `tier`, `tenant` and `gpu_model` are
    complete; `shown` are the exported ones, which limits may have replaced by `other`, as a model that no node has.
    `prices` are those of its resources, with their µGPU; None if unpriced.
    """

    uid: str
    namespace: str
    name: str
    tier: str
    tenant: str
    shown: tuple[str, str, str]
    job_kind: str
    job: str
    node: str = ""
    pool: str = ""
    gpu_model: str = ""
    state: str = PENDING
    quantity: int
    since_us: int
    prices: "tuple[tuple[int, Price | None], ...]" = ()


class ActiveNode(Struct, frozen=True, kw_only=True, gc=False):
    """A node with its capacity as µGPU by state; `gpu_model` and `pool` are the exported ones.

    Its GPU labels may be in `conflict` with the units that it offers.
    """

    name: str
    gpu_model: str
    pool: str
    parts: tuple[tuple[str, int], ...]
    conflict: LabelConflict | None = None


class Active(Struct, frozen=True):
    """All pods and nodes at one instant, immutable: another thread may derive the pods.

    `costs` are those of jobs, if they are to be exported. `packing` has the nodes of jobs. `unaccounted` counts the
    pods that ask for GPUs which are not accounted.
    """

    bound: tuple[PodRecord, ...]
    waiting: tuple[ActivePod, ...]
    nodes: tuple[ActiveNode, ...]
    costs: JobCostsNow | None = None
    packing: Mapping[Job, JobNodes] = {}
    unaccounted: UnaccountedNow = NONE_UNACCOUNTED

    def pods(self) -> list[ActivePod]:
        """Bound pods, then pending ones. No two have the same namespace and name."""
        found = (*map(holding, self.bound), *self.waiting)
        # The API has one pod of a name; an earlier one that it no longer has may still be known.
        return list({(each.namespace, each.name): each for each in found}.values())


def read_active(fleet: Fleet, *, now_us: int) -> Active:
    """The pods and nodes at `now_us`."""
    fleet.reconcile()
    fleet.advance(now_us)
    fleet.nodes.catch_up(at_us=fleet.now_us)
    bound = (each for each in fleet.pods.records.values() if each.end_by is None and each.segments)
    costs = fleet.jobs.costs.read(fleet.pods.records.values(), now_us=fleet.now_us)
    packing = dict(fleet.waiting.fitting.packing.of)
    waiting = tuple(pending(fleet))
    return Active(tuple(bound), waiting, tuple(nodes(fleet)), costs, packing, fleet.unaccounted.read())


def holding(record: PodRecord) -> ActivePod:
    """A bound pod, by its last segments."""
    last = [segment for segment in record.segments if segment.end_us is None] or [record.segments[-1]]
    return ActivePod(
        uid=record.uid,
        namespace=record.namespace,
        name=record.name,
        tier=last[0].tier,
        tenant=last[0].tenant,
        shown=last[0].labels[:3],
        job_kind=record.job_kind,
        job=record.job,
        node=record.node,
        pool=last[0].pool,
        gpu_model=last[0].gpu_model,
        state=last[0].state.value,
        quantity=sum(segment.quantity for segment in last),
        since_us=max(segment.start_us for segment in last),
        prices=tuple((segment.quantity, segment.price) for segment in last),
    )


def pending(fleet: Fleet) -> list[ActivePod]:
    """Pods without a node, by age."""
    records = [fleet.pods.records[uid] for uid in fleet.pods.index.pending]
    records.sort(key=lambda record: (record.created_us, record.uid))
    shown = PendingShown(fleet)
    return [_pending(record, shown, fleet) for record in records]


def _pending(record: PodRecord, shown: "PendingShown", fleet: Fleet) -> ActivePod:
    group, _, quantity = fleet.pods.index.pending_groups.of[record.uid]
    return ActivePod(
        uid=record.uid,
        namespace=record.namespace,
        name=record.name,
        tier=group.tier,
        tenant=group.tenant,
        shown=(*shown.labels(group), shown.model(record.selected_model)),
        job_kind=record.job_kind,
        job=record.job,
        gpu_model=shown.required(record.selected_model) or ANY,
        quantity=quantity,
        since_us=record.created_us,
    )


class PendingShown:
    """How labels of pending pods are exported. `groups` are those of all of them; see `PendingGroups.by_age`.

    Tiers and tenants of pending pods only are exported while the limits have room; they take no room from others.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.groups = fleet.pods.index.pending_groups.by_age()
        self._tiers = fleet.limiter.foreseen("tier", dict.fromkeys(group.tier for _, group in self.groups))
        self._tenants = fleet.limiter.foreseen("tenant", dict.fromkeys(group.tenant for _, group in self.groups))
        self._shown = fleet.limiter.shown
        self._models = fleet.nodes.models()

    def labels(self, group: PendingGroup) -> tuple[str, str]:
        """The exported tier and tenant of a group."""
        return self._tiers[group.tier], self._tenants[group.tenant]

    def required(self, model: str) -> str:
        """The GPU model that a pod requires, as the nodes with it are accounted; "" for none."""
        return self._models.get(model, model)

    def model(self, required: str) -> str:
        """The exported name of that model."""
        model = self.required(required)
        return self._shown("gpu_model", model) if model else ANY


def nodes(fleet: Fleet) -> list[ActiveNode]:
    """The nodes that exist, by name."""
    accounts = (each for each in fleet.nodes.accounts.values() if each.record.gone_us is None and each.slices)
    conflicts = fleet.nodes.label_conflicts
    found = [
        _node(each.record.name, each.slices[-1], conflicts.get(each.record.uid))
        for each in accounts
        if not is_stand_in(each.record.uid)
    ]
    return sorted(found, key=lambda node: node.name)


def _node(name: str, now: CapacitySlice, conflict: LabelConflict | None) -> ActiveNode:
    gpu_model, pool = now.labels
    return ActiveNode(name=name, gpu_model=gpu_model, pool=pool, parts=now.parts, conflict=conflict)

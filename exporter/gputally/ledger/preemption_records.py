"""Preemptions as a ledger has them: victim and preemptor, what they destroyed and bought, and pending deliveries."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from gputally.model.disruptions import DisruptionRecord
from gputally.model.lost_work import CheckpointSource, LostWork
from gputally.model.price import Price


class PreemptionRecord(Struct, frozen=True, kw_only=True, gc=False):
    """One preemption as counted: victim, quantity, preemptor (None if unknown) and times.

    `is_inferred` says that no Event named the preemptor: it was the only pod nominated to the node at that time. Its
    class and priority are None while it is not known; `preemptor_may_preempt` says that its policy is not Never.

    `queue_rule` is that of a queue, None if no queue did it. The preemptor of a queue is a workload, with the kind of
    its job, what its pods request (µGPU), and those of them that were on the node (JSON); None while it is not known.
    Priorities are those of both workloads in their queues then. A scheduler may preempt for a PodGroup, which is such a
    workload.
    """

    victim_uid: str
    victim_namespace: str
    victim_name: str
    victim_tier: str
    victim_tenant: str
    preemptor_uid: str | None
    preemptor_namespace: str | None
    preemptor_name: str | None
    preemptor_tier: str
    node: str
    quantity: int
    decided_us: int
    requested_us: int | None
    released_us: int | None
    is_inferred: bool
    victim_class: str | None = None
    victim_priority: int | None = None
    preemptor_class: str | None = None
    preemptor_priority: int | None = None
    preemptor_may_preempt: bool | None = None
    preemptor_tenant: str | None = None
    preemptor_kind: str | None = None
    preemptor_quantity: int | None = None
    preemptor_pods: str | None = None
    queue_rule: str | None = None

    @property
    def is_permitted(self) -> bool | None:
        """Whether the priorities permit it, see `Preemption`; None if they are not known, or do not decide."""
        if self.queue_rule is not None or self.preemptor_priority is None or self.victim_priority is None:
            return None
        return bool(self.preemptor_may_preempt) and self.preemptor_priority > self.victim_priority

    @property
    def takers(self) -> frozenset[str] | None:
        """The pods, by UID, for which it was; None if they are not known."""
        if self.queue_rule is None and not self.preemptor_kind:
            return frozenset({self.preemptor_uid}) if self.preemptor_uid else None
        return frozenset(json.loads(self.preemptor_pods)) if self.preemptor_pods else None


class LostTime(Struct, frozen=True, gc=False):
    """What the segments with the same `labels` and `price` did in one `period`, and preemptions destroyed.

    GPU-time is in µs·µGPU: `gpu_time` was allocated, and agents measured `measured`, of which `used` was used, with
    `burst` above the share of a container. `basis` says how the checkpoint before it is known.
    """

    labels: tuple[str, ...]
    price: Price | None
    basis: CheckpointSource
    gpu_time: int
    measured: int
    used: int
    burst: int
    period: int = 0


class NodeBinding(Struct, frozen=True, kw_only=True, gc=False):
    """A pod that was bound to a node and got `quantity` µGPU there, from `start_us` to `end_us`."""

    node_uid: str
    pod_uid: str
    start_us: int
    end_us: int
    quantity: int


class PendingDelivery(NamedTuple):
    """A preemption of a job that a webhook is to get, recorded at `queued_us`."""

    id: str
    queued_us: int


class PendingDeliveries(NamedTuple):
    """Some of the `total` pending deliveries, by ID. The ledger has all pods up to `pods_complete_us`."""

    total: int
    pods_complete_us: int
    page: Sequence[PendingDelivery]


class VictimRecords(NamedTuple):
    """Victims in the order of their decisions, with what is known of their preemptors and of the work they lost."""

    disruptions: Sequence[DisruptionRecord]
    preemptions: Mapping[str, PreemptionRecord]
    lost_work: Mapping[str, LostWork]

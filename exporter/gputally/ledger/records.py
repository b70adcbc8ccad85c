"""What a ledger tells its readers, whatever keeps it.

Times are µs since the epoch (UTC), quantities µGPU, GPU-time their product.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from gputally.model.allocation import End, Gap, Segment
from gputally.model.price import Price, Purchase


class Window(NamedTuple):
    """[start_us, end_us)."""

    start_us: int
    end_us: int


class LedgerState(Struct, frozen=True, kw_only=True):
    """What a ledger covers. `cluster` is the UID of the cluster's kube-system namespace, None before the first start.

    Counters contain nothing from before `accounting_start_us`. Everything is accounted up to `accounted_us`, which is
    also the end of all that lasts.
    """

    cluster: str | None
    accounting_start_us: int
    accounted_us: int


class AllocationRecord(Struct, frozen=True, kw_only=True, gc=False):
    """What is known now of one pod's allocation, whole: its stages are instants, None for one that did not come.

    `end_by` is what the end rests on. `gap` is the observation gap in which it ended, charged up to its start.
    """

    pod_uid: str
    revision: int
    recorded_us: int
    namespace: str
    name: str
    node: str
    node_uid: str
    class_name: str
    priority: int | None
    job_kind: str
    job: str
    created_us: int
    scheduled_us: int
    started_us: int | None
    deletion_us: int | None
    end_us: int | None
    end_by: End | None
    gap: Gap | None


class SegmentRecord(Struct, frozen=True, kw_only=True, gc=False):
    """One segment of an allocation, with whose it is."""

    pod_uid: str
    namespace: str
    name: str
    node: str
    job_kind: str
    job: str
    revision: int
    segment: Segment


DIMENSIONS: Final = (
    *("namespace", "name", "node", "job_kind", "job"),
    *("resource", "state", "tier", "tenant", "queue", "gpu_model", "pool"),
)
"""By what allocated time may be grouped."""


class AllocatedTime(Struct, frozen=True, kw_only=True, gc=False):
    """GPU-time (µs·µGPU) at one price, None where there is none, of all segments alike in what was asked for."""

    labels: tuple[str, ...]
    price: Price | None
    gpu_time: int

    @property
    def cost(self) -> int | None:
        """Of which COST_UNIT are one unit of the price's currency; None without a price."""
        return self.price.cost(self.gpu_time) if self.price else None


class CapacityRecord(Struct, frozen=True, kw_only=True, gc=False):
    """What one node offered in [start_us, end_us).

    `physical` are its GPUs, `covered` is what its resources amount to, and `allocatable` what is allocatable of these.
    """

    node_uid: str
    node: str
    start_us: int
    end_us: int
    physical: int
    covered: int
    allocatable: int
    is_ready: bool
    is_cordoned: bool
    gpu_model: str
    pool: str
    instance_type: str
    purchase: Purchase


class PreemptionRecord(Struct, frozen=True, kw_only=True, gc=False):
    """One preemption as counted: who lost how much, to whom (None where nobody said), and when."""

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


class GapSubject(StrEnum):
    """Of what nothing was observed."""

    WATCH = "watch"
    """A kind of objects was not watched, and its history was lost: what ended meanwhile ended somewhere in there."""
    ALLOCATION = "allocation"
    """The end of an allocation lies in there."""
    NODE = "node"
    """The end of a node lies in there."""


class ObservationGap(Struct, frozen=True, kw_only=True, gc=False):
    """A time in which something happened that nobody saw; `name` is the kind, `namespace/pod` or node."""

    subject: GapSubject
    uid: str
    name: str
    start_us: int
    end_us: int

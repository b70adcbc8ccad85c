"""The records of a ledger, independent of its storage.

Times are µs since the epoch (UTC), quantities µGPU, GPU-time their product.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from gputally.model.allocation import End, Gap, Outcome, Segment
from gputally.model.price import Asset, Price
from gputally.model.verdicts import Reason
from gputally.model.waits import WaitCause

IMPORTED: Final = "imported"
"""The cluster of ledgers of imported jobs, so that no aggregator uses one as its own."""
DIMENSIONS: Final = (
    *("namespace", "name", "node", "node_uid", "job_kind", "job", "outcome", "job_outcome"),
    *("resource", "state", "tier", "tenant", "queue", "gpu_model", "pool"),
)
"""The dimensions by which allocated time can be grouped."""
JOB: Final = ("namespace", "job_kind", "job")
"""The dimensions that identify a job."""
MEASURED_DIMENSIONS: Final = tuple(dimension for dimension in DIMENSIONS if dimension != "state")
"""The dimensions by which measured usage can be grouped."""


class Window(NamedTuple):
    """[start_us, end_us)."""

    start_us: int
    end_us: int


class Records(StrEnum):
    """What the lists of a ledger consist of. Each kind may have records from another time on."""

    ALLOCATIONS = "allocations"
    """Allocations of pods and jobs, with their cost and usage; of the earliest, only sums by day may be left."""
    PODS = "pods"
    """Single pods: the retention leaves only sums of the earliest ones."""
    DISRUPTIONS = "disruptions"
    """Preemptions, and other causes for which pods lost their GPUs."""
    WAITS = "waits"
    """Waits of pods for GPUs, and of workloads for pods."""


class LedgerState(Struct, frozen=True, kw_only=True):
    """The scope of a ledger. `cluster` is the UID of the cluster's kube-system namespace, None before the first start.

    Counters exclude the time before `accounting_start_us`. The ledger is complete up to `accounted_us`, where records
    without an end are cut off. From `detail_start_us` on, single allocations are known; of those that ended before,
    only sums by day may be left. None if nothing was rolled up.

    `later` has the kinds of records that do not begin at the accounting start, with their first time; None for a kind
    that this ledger does not have.
    """

    cluster: str | None
    accounting_start_us: int
    accounted_us: int
    detail_start_us: int | None = None
    later: Mapping[Records, int | None] = {}

    def records_from_us(self, records: Records) -> int | None:
        """From when on (µs) the ledger has all records of a kind: before, "none" means that nothing is known.

        None if the ledger does not have such records.
        """
        return self.later.get(records, self.accounting_start_us)


class AllocationRecord(Struct, frozen=True, kw_only=True, gc=False):
    """The latest revision of one pod's allocation, not clipped. Stages are instants, None if not reached.

    `end_by` is the evidence of the end. `gap` is the observation gap in which it ended, charged up to its start.
    `phase`, `reason` and `exit_code` are those of `Result`, empty or None if not known.
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
    outcome: Outcome
    phase: str
    reason: str
    exit_code: int | None


class SegmentRecord(Struct, frozen=True, kw_only=True, gc=False):
    """One segment of an allocation, with its pod and job. `job_outcome` is that of the pod if no Job controls it."""

    pod_uid: str
    namespace: str
    name: str
    node: str
    node_uid: str
    job_kind: str
    job: str
    outcome: Outcome
    job_outcome: Outcome
    revision: int
    segment: Segment


class GapSegment(Struct, frozen=True, gc=False):
    """A segment, charged up to `end_us`, of an allocation whose end is only known to be in a gap of `gap_us`.

    GPU-time is in µs·µGPU, in the window: `gpu_time` was charged, and `most` is what may be missing.
    """

    record: SegmentRecord
    end_us: int
    gpu_time: int
    most: int
    gap_us: int


class AllocatedTime(Struct, frozen=True, kw_only=True, gc=False):
    """GPU-time (µs·µGPU) at one `price` (None if unpriced) of all segments with the same `labels`, in one `period`."""

    labels: tuple[str, ...]
    price: Price | None
    gpu_time: int
    period: int = 0

    @property
    def cost(self) -> int | None:
        """The cost; COST_UNIT is one unit of the price's currency. None without a price."""
        return self.price.cost(self.gpu_time) if self.price else None


class JobSet(Struct, frozen=True, gc=False):
    """The different jobs of all segments with the same `labels` and `price`, in one `period`.

    A job is a number, which is the same in all sets of one read. `bound` is how many of their pods were bound in the
    period, and `wait_us` how long these had waited since their creation, together.
    """

    labels: tuple[str, ...]
    price: Price | None
    jobs: set[int]
    period: int = 0
    bound: int = 0
    wait_us: int = 0


class ReachedProgress(Struct, frozen=True, kw_only=True, gc=False):
    """The progress of one job, in millionths of `unit`; `is_whole` if none of its pods was bound before the window."""

    namespace: str
    job_kind: str
    job: str
    micro: int
    unit: str
    is_whole: bool


class MeasuredTime(Struct, frozen=True, gc=False):
    """What agents measured for the segments with the same `labels` and `price`, in one `period`.

    GPU-time is in µs·µGPU, `energy` in mJ. `burst` is the part of `used` above the share of a container.
    """

    labels: tuple[str, ...]
    price: Price | None
    measured: int
    used: int
    burst: int
    energy: int
    period: int = 0

    @property
    def idle(self) -> int:
        """The measured GPU-time that was not used."""
        return self.measured - (self.used - self.burst)


class CapacityRecord(Struct, frozen=True, kw_only=True, gc=False):
    """The capacity of one node in [start_us, end_us).

    `physical` are its GPUs, `covered` is the sum of its resources, and `allocatable` the allocatable part of these;
    `divided` if any unit is a part of a GPU, or if the node has never offered its GPUs. `price` is that of a GPU-hour,
    None if it is unpriced. The node `continues` an earlier one of the same machine, if any: allocations on that are on
    this one from its first record on.
    """

    node_uid: str
    node: str
    start_us: int
    end_us: int
    physical: int
    covered: int
    allocatable: int
    divided: bool
    ready: bool
    cordoned: bool
    asset: Asset
    price: Price | None
    continues: str


class NodeSteps(NamedTuple):
    """The changes of the allocated µGPU of the pods that were bound to a node, as (µs, change), by time."""

    node_uid: str
    steps: Sequence[tuple[int, int]]


class PriorityClassRecord(Struct, frozen=True, kw_only=True, gc=False):
    """What a PriorityClass said from `from_us` to `to_us`, None while that lasts."""

    name: str
    from_us: int
    to_us: int | None
    value: int
    preemption_policy: str
    is_default: bool


class GapSubject(StrEnum):
    """The subject of an observation gap."""

    WATCH = "watch"
    """A kind was not watched and its history is lost: objects deleted in the gap have no exact end."""
    ALLOCATION = "allocation"
    """An allocation ended in the gap."""
    NODE = "node"
    """A node was deleted in the gap."""


class ObservationGap(Struct, frozen=True, kw_only=True, gc=False):
    """A period with unobserved changes; `name` is the kind, `namespace/pod` or node."""

    subject: GapSubject
    uid: str
    name: str
    start_us: int
    end_us: int


class Piece(NamedTuple):
    """The part [start_us, end_us) of a span that lies in one period."""

    period: int
    start_us: int
    end_us: int


def pieces(start_us: int, end_us: int, cuts: Sequence[int]) -> Iterator[Piece]:
    """The pieces of [start_us, end_us) between ascending `cuts` (µs); one piece if no cut is inside."""
    period = bisect_right(cuts, start_us)
    while period < len(cuts) and cuts[period] < end_us:
        yield Piece(period, start_us, cuts[period])
        start_us = cuts[period]
        period += 1
    yield Piece(period, start_us, end_us)


class WaitRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A part of a pod's wait for GPUs without changes; `to_us` is None while it lasts.

    The occupying tier and tenant are "" if no pod held what it waited for; of `quantity`, `occupied` µGPU are charged
    to them, None for all. `price_key` is the lowest price of the nodes that the pod selects, None if they have none,
    and `highest_price_key` the highest, None if all are equal.
    """

    pod_uid: str
    from_us: int
    to_us: int | None
    namespace: str
    name: str
    tier: str
    tenant: str
    quantity: int
    reason: Reason
    cause: WaitCause
    occupying_tier: str
    occupying_tenant: str
    price_key: str | None
    occupied: int | None = None
    highest_price_key: str | None = None


class PendingTime(NamedTuple):
    """A part of a wait without changes, at the lowest price of the nodes that are selected, None without one.

    It is that of one pod; or unless `is_created`, that of a workload for `pods` pods that do not exist, with its UID
    and name, and with `is_at_least` for as many at least. `quantity` is µGPU of one pod, of which
    `occupied` are charged to the occupying tier and tenant. `highest` is the highest price, None if all are equal.
    """

    namespace: str
    uid: str
    from_us: int
    to_us: int | None
    name: str
    tier: str
    tenant: str
    pods: int
    quantity: int
    reason: Reason
    cause: WaitCause
    occupying_tier: str
    occupying_tenant: str
    price: Price | None
    is_created: bool
    is_at_least: bool
    occupied: int
    highest: Price | None

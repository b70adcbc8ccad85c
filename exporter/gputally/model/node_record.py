"""Records of nodes, one for each incarnation (UID)."""

from enum import StrEnum

from msgspec import Struct

from gputally.model.price import Asset, Price

Span = tuple[int, int | None]
"""Start and end in µs; None while it lasts."""


class CapacityState(StrEnum):
    """A partition of a node's capacity; unallocated capacity has the first other state that applies."""

    ALLOCATED = "allocated"
    UNKNOWN = "unknown"
    """The node is not ready or lost."""
    CORDONED = "cordoned"
    UNHEALTHY = "unhealthy"
    """Reported by the device plugin, but not allocatable."""
    UNSLICED = "unsliced"
    """Not covered by the layout of slices or replicas, or never offered as a resource (such as by DRA only)."""
    FREE = "free"
    OVERCOMMITTED = "overcommitted"
    """Allocations above capacity: capacity + overcommitted = allocated + the others."""


class LabelConflict(StrEnum):
    """How a node's labels contradict the units that it offers."""

    MORE_UNITS = "more_units"
    """More units than the labelled GPUs and replicas make: a unit is a smaller share of a GPU than the labels say."""
    FEWER_GPUS = "fewer_gpus"
    """Fewer GPUs are labelled than are offered, without being a share of one: a GPU has failed."""
    FEWER_UNITS = "fewer_units"
    """Fewer units than one GPU has replicas by its label: a unit is a larger share of a GPU than the labels say."""

    @property
    def sentence(self) -> str:
        """What the node does, and what follows."""
        return _SENTENCES[self]


_SENTENCES = {
    LabelConflict.MORE_UNITS: "it offers more GPU units than its labels explain; a unit counts as a share of a GPU",
    LabelConflict.FEWER_GPUS: "its labels count fewer GPUs than it offers; if a GPU has failed, units stay the same",
    LabelConflict.FEWER_UNITS: "it offers fewer units than its label says share one GPU; the offered number is used",
}


class LostLabel(Struct, frozen=True, kw_only=True, gc=False):
    """A label that was removed from a node at `since_us`, with its last `value`."""

    key: str
    value: str
    since_us: int


class NodeFacts(Struct, frozen=True, kw_only=True, gc=False):
    """The properties of a node until the next change; quantities in µGPU.

    Of the `physical` GPUs, the node's resources cover `covered`, of which `allocatable` are allocatable; `divided` if
    any unit is a part of a GPU, or if the node has never offered its GPUs. These derive from the current `labels`
    and from the `units`, as (resource, capacity, allocatable). `offered` is the maximum number of units of each
    resource that this incarnation has offered so far, None for a node that is not known.

    `gpus` is the largest labelled number of GPUs that explained the units offered now, 0 if none did. `kept_offer` is
    the last offer of a node that offers nothing now, because its device plugin restarts. If the labels are in
    `conflict` with the units, `sharing` are the corrected labels that quantities depend on, None if none is corrected.
    """

    physical: int
    covered: int
    divided: bool = False
    allocatable: int
    ready: bool
    cordoned: bool
    gpu_model: str
    pool: str
    asset: Asset
    purchase_conflict: bool = False
    labels: tuple[tuple[str, str], ...] = ()
    units: tuple[tuple[str, int, int], ...] = ()
    offered: tuple[tuple[str, int], ...] | None = None
    gpus: int = 0
    kept_offer: tuple[tuple[str, int], ...] = ()
    conflict: LabelConflict | None = None
    sharing: tuple[tuple[str, str], ...] | None = None


class NodeRecord(Struct, frozen=True, kw_only=True, gc=False):
    """One incarnation of a node, with the history of its facts as (from_us, facts), the oldest first.

    It was deleted in [gone_us, gone_by_us], and is charged up to `gone_us`. `machine` is its system UUID, which may
    identify it as the successor of the incarnation with the UID `continues`. `unready` are the last periods in which it
    was not ready, `lost` its removed labels. `looked_at` is the time since which a label key is observed, for keys that
    only the configuration names and that may be reported late.
    """

    uid: str
    name: str
    created_us: int
    gone_us: int | None = None
    gone_by_us: int | None = None
    machine: str = ""
    continues: str = ""
    facts: tuple[tuple[int, NodeFacts], ...] = ()
    unready: tuple[Span, ...] = ()
    lost: tuple[LostLabel, ...] = ()
    looked_at: tuple[tuple[str, int], ...] = ()


class UnknownOffer(Struct, frozen=True, kw_only=True, gc=False):
    """The `resources` of a node that look like GPUs, and that no rule weighs."""

    uid: str
    resources: tuple[str, ...]


class CapacitySlice(Struct, frozen=True, kw_only=True, gc=False):
    """The capacity of a node by state from `start_us` to `end_us` (None while it lasts).

    `parts` are (state, µGPU), of which `allocated` µGPU are allocated; `labels` the exported (gpu_model, pool).
    """

    labels: tuple[str, str]
    parts: tuple[tuple[str, int], ...]
    allocated: int
    price: Price | None
    start_us: int
    end_us: int | None

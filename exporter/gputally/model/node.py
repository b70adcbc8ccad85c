"""What is kept of a node, one incarnation (one UID) at a time."""

from enum import StrEnum

from msgspec import Struct

from gputally.model.price import Asset, Price


class CapacityState(StrEnum):
    """A partition of a node's capacity; what is not allocated falls into the first of the others that applies."""

    ALLOCATED = "allocated"
    UNKNOWN = "unknown"
    """The node is not ready or lost."""
    CORDONED = "cordoned"
    UNHEALTHY = "unhealthy"
    """Reported by the device plugin, but not allocatable."""
    UNSLICED = "unsliced"
    """Left over by the layout of slices or replicas."""
    FREE = "free"
    OVERCOMMITTED = "overcommitted"
    """Allocations above capacity: capacity + overcommitted = allocated + the others."""


class LostLabel(Struct, frozen=True, kw_only=True, gc=False):
    """A label that a node carried, with its last `value`, and carries no more since `since_us`."""

    key: str
    value: str
    since_us: int


class NodeFacts(Struct, frozen=True, kw_only=True, gc=False):
    """What is true of a node until it changes; quantities in µGPU.

    `physical` GPUs, of which the resources offered cover `covered` and allow `allocatable`; `divided` if any of
    them is a part of a GPU. These follow from the `labels` that hold (None for facts of an earlier version) and from
    the `units`, as (resource, capacity, allocatable). `offered` is the most units of each resource that this
    incarnation offered up to then, None where nobody looked.
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
    labels: tuple[tuple[str, str], ...] | None = None
    units: tuple[tuple[str, int, int], ...] = ()
    offered: tuple[tuple[str, int], ...] | None = None


Span = tuple[int, int | None]
"""Start and end in µs; None while it lasts."""


class NodeRecord(Struct, frozen=True, kw_only=True, gc=False):
    """One incarnation of a node, with the history of its facts as (from_us, facts), the oldest first.

    It ceased to exist in [gone_us, gone_by_us], and is charged up to the first. `machine` is its system UUID, by which
    it may continue the incarnation with the UID `continues`. `unready` are the last times it was not ready, `lost` the
    labels that it carried at some time and does not carry now. `looked_at` says since when keys are looked at that only
    the configuration names, and of which may be told late.
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


class CapacitySlice(Struct, frozen=True, kw_only=True, gc=False):
    """How a node's capacity was divided from `start_us` to `end_us` (None while it is).

    `parts` are (state, µGPU), of which `allocated` µGPU are allocated; `labels` the exported (gpu_model, pool).
    """

    labels: tuple[str, str]
    parts: tuple[tuple[str, int], ...]
    allocated: int
    price: Price | None
    start_us: int
    end_us: int | None

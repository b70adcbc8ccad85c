"""What a ledger has of preemptions besides the victims: what they destroyed and bought, and pending deliveries."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from gputally.model.disruptions import VictimRecord
from gputally.model.lost_work import CheckpointSource, LostWork
from gputally.model.price import Price


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
    """Victims in the order of their decisions, with what is known of the work they lost, by UID."""

    victims: Sequence[VictimRecord]
    lost_work: Mapping[str, LostWork]

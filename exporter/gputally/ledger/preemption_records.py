"""The records of a ledger that say what preemptions destroyed and bought; see `records`."""

from msgspec import Struct

from gputally.model.price import Price
from gputally.model.work.checkpoint import CheckpointSource


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

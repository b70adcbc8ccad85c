"""What pod sizes fit on a node now."""

from gputally.model.placement.capacity import NodeCapacity
from gputally.model.placement.needs import Amounts
from gputally.placement.node_room import NodeRoom


def capacity_of(node: NodeRoom, *, gpu: str, per_gpu: Amounts = ()) -> NodeCapacity:
    """How many pods of each size in SIZES fit, by GPUs of the resource `gpu` and `per_gpu` of other resources for each.

    Pods tolerate the node's taints, which reserve it for pods with GPUs, but no cordon.
    """
    raise NotImplementedError

"""What stands for a node that is not known, though pods are bound to it: it has no GPUs."""

from gputally.accounting.nodes.node_facts import NO_POOL
from gputally.model.node import NodeFacts, NodeRecord
from gputally.model.price import Asset

_PREFIX = "unknown/"
NO_FACTS = NodeFacts(
    physical=0,
    covered=0,
    allocatable=0,
    ready=False,
    cordoned=False,
    gpu_model="unknown",
    pool=NO_POOL,
    asset=Asset(gpu_model="unknown", pool=NO_POOL),
)


def stand_in(name: str) -> NodeRecord:
    """For all nodes of that name."""
    return NodeRecord(uid=f"{_PREFIX}{name}", name=name, created_us=0, facts=((0, NO_FACTS),))


def is_stand_in(uid: str) -> bool:
    """Whether it stands for a node that is not known."""
    return uid.startswith(_PREFIX)

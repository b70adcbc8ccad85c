"""The account that replaces an unknown node to which pods are bound; it has no GPUs."""

from gputally.accounting.nodes.node_facts import NO_POOL
from gputally.model.node_record import NodeFacts, NodeRecord
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
    """The stand-in of all unknown nodes of that name."""
    return NodeRecord(uid=f"{_PREFIX}{name}", name=name, created_us=0, facts=((0, NO_FACTS),))


def is_stand_in(uid: str) -> bool:
    """Whether the account is a stand-in."""
    return uid.startswith(_PREFIX)

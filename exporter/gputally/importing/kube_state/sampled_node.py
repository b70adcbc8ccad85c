"""The facts of a node from the samples of its series."""

from collections.abc import Mapping
from typing import Final

from gputally.accounting.facts import gpu_model
from gputally.accounting.nodes import purchase
from gputally.accounting.nodes.node_facts import observed
from gputally.accounting.nodes.node_labels import INSTANCE_TYPE
from gputally.importing.kube_state import series_names
from gputally.model.kube.meta import AnnotatedMeta
from gputally.model.kube.nodes import Node, NodeStatus
from gputally.model.node_record import NodeFacts, NodeRecord
from gputally.model.rules import Rules
from gputally.shares import gfd, gke
from gputally.shares.label_conflicts import COUNTS

NODE_LABELS: Final = "kube_node_labels"
CAPACITY: Final = "kube_node_status_capacity"
_KEYS: Final = frozenset(
    {
        INSTANCE_TYPE,
        gfd.MEMORY,
        gfd.STRATEGY,
        gke.CLIENTS,
        gke.PARTITION,
        *COUNTS,
        *gpu_model.LABELS,
        *purchase.LABELS,
    }
)


def sampled_node(
    name: str, labels: Mapping[str, str], offered: Mapping[str, int], rules: Rules, price_labels: frozenset[str]
) -> NodeFacts:
    """The facts that follow from `kube_node_labels` and the units of each resource that the machine `offered`."""
    replicas = (f"{resource.removesuffix('.shared')}{gfd.REPLICAS}" for resource in offered)
    keys = {*_KEYS, *rules.pool_labels, *price_labels, *replicas}
    found = series_names.kubernetes_labels(labels, keys)
    units = dict[str, str | int](offered)
    node = Node(metadata=AnnotatedMeta(name=name, labels=found), status=NodeStatus(capacity=units, allocatable=units))
    record = NodeRecord(uid="", name=name, created_us=0)
    record = observed(record, node, rules=rules, price_labels=price_labels, at_us=0, since_us=0)
    return record.facts[-1][1]

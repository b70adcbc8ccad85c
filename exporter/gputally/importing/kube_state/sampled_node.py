"""The facts of a node from the samples of its series."""

from collections.abc import Iterable, Mapping
from typing import Final

from gputally.accounting.nodes import gpu_model, purchase
from gputally.accounting.nodes.node_facts import observed
from gputally.accounting.nodes.node_labels import INSTANCE_TYPE
from gputally.errors import MalformedObject
from gputally.importing.kube_state import series_names
from gputally.importing.kube_state.prometheus_api import SampledSeries
from gputally.model.kube import AnnotatedMeta, Node, NodeStatus
from gputally.model.node import NodeFacts, NodeRecord
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
    name: str, labels: Mapping[str, str], capacity: Iterable[SampledSeries], rules: Rules, price_labels: frozenset[str]
) -> NodeFacts:
    """The facts that follow from `kube_node_labels` and `kube_node_status_capacity`, as far as they are there."""
    offered: dict[str, str | int] = {}
    for each in capacity:
        if resource := series_names.resource_named(each.metric.get("resource", ""), rules):
            offered[resource] = f"{each.number:.0f}"
    replicas = (f"{resource.removesuffix('.shared')}{gfd.REPLICAS}" for resource in offered)
    keys = {*_KEYS, *rules.pool_labels, *price_labels, *replicas}
    found = series_names.kubernetes_labels(labels, keys)
    node = Node(
        metadata=AnnotatedMeta(name=name, labels=found), status=NodeStatus(capacity=offered, allocatable=offered)
    )
    record = NodeRecord(uid="", name=name, created_us=0)
    try:
        record = observed(record, node, rules=rules, price_labels=price_labels, at_us=0, since_us=0)
    except MalformedObject:
        bare = Node(metadata=node.metadata)
        record = observed(record, bare, rules=rules, price_labels=price_labels, at_us=0, since_us=0)
    return record.facts[-1][1]

"""Nodes: labels, taints, capacity and conditions. Shapes: k8s.io/api core/v1."""

from datetime import datetime

from msgspec import field

from gputally.model.kube.meta import AnnotatedMeta, Camel, Condition, Object


class NodeTaint(Camel, frozen=True):
    """A taint of a node; only some effects have a time."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeSpec(Camel, frozen=True):
    """`unschedulable` is what `kubectl cordon` sets."""

    unschedulable: bool | None = None
    taints: tuple[NodeTaint, ...] | None = None


class NodeInfo(Camel, frozen=True):
    """`system_uuid` is from the machine's firmware; empty or not unique if the firmware provides none."""

    system_uuid: str = field(default="", name="systemUUID")


class NodeStatus(Camel, frozen=True):
    """Quantities of all resources that the kubelet reported, and its machine."""

    capacity: dict[str, str | int] | None = None
    allocatable: dict[str, str | int] | None = None
    conditions: tuple[Condition, ...] | None = None
    node_info: NodeInfo | None = None


class Node(Object, frozen=True):
    """core/v1 Node."""

    metadata: AnnotatedMeta
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)

"""What a node's spec and its machine say."""

from datetime import datetime

from msgspec import field

from gputally.model.objects.camel import Camel


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

"""The view of a node at one moment, from which all agent metrics are read."""

from collections.abc import Mapping

from msgspec import Struct

from gputally.metering.reporting import DeviceSnapshot
from gputally.model.devices import Reading
from gputally.model.health import NodeHealth


class NodeView(Struct, frozen=True, kw_only=True):
    """The last `readings` of the GPUs that respond, and the UUIDs of those that are `down`.

    `xids` are (count, time of the last in µs) by GPU and code.
    """

    health: NodeHealth
    readings: tuple[Reading, ...]
    down: tuple[str, ...]
    xids: Mapping[tuple[str, int], tuple[int, int]]
    devices: DeviceSnapshot

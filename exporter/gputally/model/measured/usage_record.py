"""What is kept of what agents told: amounts by holder and hour, as they were last seen."""

from typing import NamedTuple

from msgspec import Struct

from gputally.model.measured.usage_report import GpuHour, Hour


class AssignmentKey(NamedTuple):
    """Which time of which container with which device; no two lives of agents share an `epoch`."""

    epoch: str
    device: str
    namespace: str
    pod: str
    container: str
    since_us: int


class AssignmentRecord(Struct, frozen=True, kw_only=True, gc=False):
    """One container's time with one device, as `AssignmentReport` tells it; times are by the node's own clock.

    `ahead_us` is by how much that clock was ahead of ours. `pod_uid` is whose it is: None as long as that is not
    decided, "" for no pod that the API told of.
    """

    key: AssignmentKey
    node: str
    gpu: str
    resource: str
    share: int
    seen_us: int
    after_us: int | None
    until_us: int | None
    ahead_us: int
    pod_uid: str | None = None


class AssignmentHour(Struct, frozen=True, kw_only=True, gc=False):
    """What a holder did in one hour; `open` as long as its agent may still tell of it."""

    assignment: AssignmentRecord
    hour: Hour
    open: bool = True


class GpuKey(NamedTuple):
    """Which hour of which physical GPU, as told in one life of an agent."""

    epoch: str
    gpu: str
    start_us: int


class UnallocatedHour(Struct, frozen=True, kw_only=True, gc=False):
    """What nobody held of a GPU in one hour; `open` as long as its agent may still tell of it."""

    key: GpuKey
    node: str
    hour: GpuHour
    open: bool = True

"""Stored usage: the latest reported amounts by device assignment and hour."""

from typing import NamedTuple

from msgspec import Struct

from gputally.model.measured.usage_report import GpuHour, Hour


class AssignmentKey(NamedTuple):
    """Identifies one assignment of a device to a container; `epoch` is unique for each start of an agent."""

    epoch: str
    device: str
    namespace: str
    pod: str
    container: str
    since_us: int


class AssignmentRecord(Struct, frozen=True, kw_only=True, gc=False):
    """One assignment of a device to a container, from an `AssignmentReport`; times are by the node's own clock.

    `ahead_us` is how far that clock is ahead of ours. `pod_uid` is the pod that it belongs to: None while that is
    undecided, "" if the API server did not report such a pod.
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
    """The usage of an assignment in one hour; `open` while its agent may still report it."""

    assignment: AssignmentRecord
    hour: Hour
    open: bool = True


class GpuKey(NamedTuple):
    """Identifies one hour of one physical GPU, for one start of an agent."""

    epoch: str
    gpu: str
    start_us: int


class UnallocatedHour(Struct, frozen=True, kw_only=True, gc=False):
    """The usage of a GPU outside any allocation in one hour; `open` while its agent may still report it."""

    key: GpuKey
    node: str
    hour: GpuHour
    open: bool = True

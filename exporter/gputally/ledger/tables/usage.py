"""What agents measured."""

from typing import Final

from msgspec import Struct

from gputally.ledger.tables.table import BigInteger, Index, Table


class AssignmentRow(Struct, frozen=True):
    """Which container had which device of a node, in each life (epoch) of the node's agent.

    Times here and in `usage_hours` are by the clock of the node, which was ahead of ours by `ahead_us`. `pod_uid` is
    NULL until the pod is known, '' if the API server had no such pod.
    """

    epoch: str
    device: str
    namespace: str
    pod: str
    container: str
    since_us: int
    node: str
    gpu: str
    resource: str
    share: int
    seen_us: int
    after_us: int | None
    until_us: int | None
    ahead_us: int
    pod_uid: str | None


USAGE_ASSIGNMENTS: Final = Table(
    "usage_assignments",
    AssignmentRow,
    number="assignment",
    key=("epoch", "device", "namespace", "pod", "container", "since_us"),
    indexes=(
        Index("usage_assignments_pod", ("pod_uid",)),
        Index("usage_assignments_ahead", ("assignment",), where="ahead_us NOT BETWEEN -3600000000 AND 3600000000"),
    ),
)


class UsageHourRow(Struct, frozen=True):
    """What a container did on a device in an hour, as last reported.

    GPU-time is in µs·µGPU, memory in byte·µs, energy in mJ. While `open`, the agent may still report it.
    """

    assignment: int
    start_us: int
    from_us: int
    to_us: int
    measured: int
    used: int
    burst: int
    memory: BigInteger
    memory_us: int
    energy: int
    open: bool


USAGE_HOURS: Final = Table(
    "usage_hours",
    UsageHourRow,
    key=("assignment", "start_us"),
    indexes=(
        Index("usage_hours_start", ("start_us",)),
        Index("usage_hours_open", ("assignment",), where="open"),
    ),
)


class UnallocatedHourRow(Struct, frozen=True):
    """What a GPU did outside any allocation in an hour: use (µs·µGPU) and energy (mJ)."""

    epoch: str
    gpu: str
    start_us: int
    node: str
    unattributed: int
    energy: int
    open: bool


UNALLOCATED_USAGE: Final = Table(
    "unallocated_usage",
    UnallocatedHourRow,
    key=("epoch", "gpu", "start_us"),
    indexes=(Index("unallocated_usage_open", ("start_us",), where="open"),),
)

"""Usage that agents report: requests to their pods, the wire format of `/v1/usage`, and the stored amounts.

All amounts are cumulative within their hour and never decrease while the agent runs; a reader stores the last amounts
and adds the difference, so that repeated, late or missed pulls neither lose nor repeat usage. Ended assignments stay in
the report as long as the agent keeps its journal. A reader that names the last report that it has stored gets only what
changed since: see `UsageCursor`.
"""

import re
from enum import StrEnum
from typing import Final, NamedTuple, Self

from msgspec import Struct

from gputally.model.rules import MigBasis
from gputally.model.units import US_PER_SECOND

VERSION: Final = 1
MIN_JOURNAL_US: Final = 600 * US_PER_SECOND
"""How long agents report what ended, at least."""
_CURSOR: Final = re.compile(r"(?P<epoch>.+)\.(?P<revision>\d{1,18})", re.ASCII | re.DOTALL)


class AgentPod(Struct, frozen=True, kw_only=True, gc=False):
    """A running agent pod, its node, and the IP address at which it serves."""

    uid: str
    node: str
    address: str
    created_us: int


class PullOutcome(StrEnum):
    """The outcome of a request to an agent."""

    ANSWERED = "answered"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    """No complete response within the deadline."""
    FORBIDDEN = "forbidden"
    """The agent rejects our token or certificate, or we have none."""
    STATUS = "status"
    """An HTTP status other than success."""
    OVERSIZED = "oversized"
    MALFORMED = "malformed"
    """Not a report, or a report with impossible values."""
    VERSION = "version"
    """A report with an unknown version."""
    BASIS = "basis"
    """A report that weighs MIG devices by another basis than ours."""
    NODE = "node"
    """A report of another node than the agent's."""


class Fault(StrEnum):
    """Why reported usage is excluded."""

    FELL = "fell"
    """Less than reported before."""
    IMPOSSIBLE = "impossible"
    """More than one device can do in that time, or usage in the future."""
    EXCEEDED = "exceeded"
    """Together with all other reported usage, more than the node's GPUs can do."""


class Hour(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Amounts of the UTC hour that starts at `start_us`; they cover time within [from_us, to_us].

    GPU-time is in µs·µGPU of physical GPUs. `used` is the integral of utilisation times the weight of the share, of
    which `burst` is above the share; `measured` is the share's time with known utilisation.
    `memory` is the integral of used bytes, in byte·µs, over the `memory_us` for which it is known; `energy` is in mJ.
    """

    start_us: int
    from_us: int
    to_us: int
    measured: int = 0
    used: int = 0
    burst: int = 0
    memory: int = 0
    memory_us: int = 0
    energy: int = 0


class AssignmentReport(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The usage of one container on one assigned device, as reported by the kubelet.

    `device` is the UUID of a GPU or of a MIG device on it, `gpu` that of the physical GPU, of which `share` µGPU are
    assigned. The assignment was first observed at `since_us` and absent at `after_us` (None if the agent had just
    started, or could not observe); it was last observed at `seen_us` and absent at `until_us`.
    `pod_uid` is empty if the node does not report it.
    """

    device: str
    gpu: str
    namespace: str
    pod: str
    container: str
    resource: str
    share: int
    since_us: int
    seen_us: int
    after_us: int | None = None
    until_us: int | None = None
    pod_uid: str = ""
    hours: tuple[Hour, ...] = ()


class GpuHour(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Usage (µs·µGPU) and energy (mJ) outside any allocation in one hour."""

    start_us: int
    unattributed: int = 0
    energy: int = 0


class GpuReport(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One physical GPU: the `source` of its utilisation (`samples`, `gpm`, `rates` or `none`), and its watermark.

    `lost` once the driver cannot reach it; the amounts of its assignments then no longer change.
    """

    uuid: str
    model: str
    source: str
    watermark_us: int
    lost: bool = False
    hours: tuple[GpuHour, ...] = ()


class UsageCursor(NamedTuple):
    """The last report that a reader has stored, by `epoch` and `revision`: `/v1/usage?since=EPOCH.REVISION`.

    The agent keeps nothing for its readers: any number of them may ask, and each may ask again with an older cursor,
    which returns the same changes or more.
    """

    epoch: str
    revision: int

    @classmethod
    def parsed(cls, text: str) -> Self | None:
        """The cursor in a request; None if it is not one, which asks for the whole report."""
        found = _CURSOR.fullmatch(text)
        return cls(found["epoch"], int(found["revision"])) if found else None

    def __str__(self) -> str:
        return f"{self.epoch}.{self.revision}"


class UsageReport(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The response of `/v1/usage`.

    `epoch` changes at each start of the agent, which resets all amounts to 0. `now_us` is the node's clock at the
    response, from which a reader computes the clock difference. `watermark_us` is the time up to which all GPUs that
    are not lost are accounted. `allocations_us` is the time when the kubelet last reported its assignments, None before
    the first report. `mig_basis` is the basis for the weights of MIG devices; agents without it use compute.

    `revision` grows with each change, 0 from an agent without revisions. If `since` is 0, the report is whole: what it
    lacks is no longer reported. Else it has only what changed after revision `since`: all GPUs and current assignments,
    with the changed ones of their hours, and the ended assignments that changed. No report has assignments that ended,
    or hours that ended, at or before `journal_start_us`.
    """

    version: int
    epoch: str
    node: str
    now_us: int
    watermark_us: int
    allocations_us: int | None = None
    mig_basis: str = MigBasis.COMPUTE.value
    revision: int = 0
    since: int = 0
    journal_start_us: int = 0
    gpus: tuple[GpuReport, ...] = ()
    assignments: tuple[AssignmentReport, ...] = ()


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

"""What an agent tells of its node: the wire format of `/v1/usage`, version 1.

All amounts are cumulative within their hour and never fall while the agent runs; a reader keeps what it saw last and
adds the difference, so that pulling twice, late or not at all loses and repeats nothing. What ended stays in the report
for as long as the agent keeps its journal.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from gputally.model.rules import MigBasis

VERSION: Final = 1


class Fault(StrEnum):
    """Why what an agent tells is left out."""

    FELL = "fell"
    """Less than was told before."""
    IMPOSSIBLE = "impossible"
    """More than one device can do in that time, or of a time to come."""
    EXCEEDED = "exceeded"
    """With all else that is told, more than the node's GPUs can have done."""


class Hour(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Amounts of one hour of UTC that begins at `start_us`; what they cover lies in [from_us, to_us].

    GPU-time is in µs·µGPU of physical GPUs. `used` is the integral of utilisation times the held share's weight, of
    which `burst` lies above the share; `measured` is the share's time for which utilisation is known at all.
    `memory` is the integral of bytes held, in byte·µs, over the `memory_us` for which it is known; `energy` is in mJ.
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
    """What one container did with one device it held, as the kubelet knows it.

    `device` is the UUID of a GPU or of a MIG device on it, `gpu` that of the physical GPU, of which it held `share`
    µGPU. It was first found at `since_us`, having been absent at `after_us` (None when the agent itself had just
    begun, or could not see); it was found gone at `until_us`, having been there at `seen_us`.
    `pod_uid` is empty where the node does not tell it.
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
    """What nobody held, in one hour: use without an allocation (µs·µGPU) and energy that no holder spent (mJ)."""

    start_us: int
    unattributed: int = 0
    energy: int = 0


class GpuReport(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One physical GPU: how its utilisation is known (`samples`, `gpm`, `rates` or `none`), and up to when.

    `lost` once the driver no longer reaches it; its holders' amounts stand still from then on.
    """

    uuid: str
    model: str
    source: str
    watermark_us: int
    lost: bool = False
    hours: tuple[GpuHour, ...] = ()


class UsageReport(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The answer of `/v1/usage`.

    `epoch` is new whenever the agent starts, with all amounts at 0. `now_us` is the node's clock as the answer is
    written, by which a reader finds how far the two clocks are apart. `watermark_us` is up to when every GPU that is
    not lost is accounted. `allocations_us` is when the kubelet last told who holds what, None before it first did.
    `mig_basis` is by what the agent weighs MIG devices; agents that do not tell weigh by compute.
    """

    version: int
    epoch: str
    node: str
    now_us: int
    watermark_us: int
    allocations_us: int | None = None
    mig_basis: str = MigBasis.COMPUTE.value
    gpus: tuple[GpuReport, ...] = ()
    assignments: tuple[AssignmentReport, ...] = ()

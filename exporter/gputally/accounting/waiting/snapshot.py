"""Shows the pods that wait at one instant: in sums with bounded labels, and pod by pod."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from gputally.model.needs import Needs, Situation
from gputally.model.partial_gangs import PartialNow
from gputally.model.pod_record import PodRecord
from gputally.model.verdicts import Verdict
from gputally.model.waits import PendingSegment


class PendingSums(Struct, frozen=True, kw_only=True):
    """Sums of pending pods, and of what fits.

    `reasons` are pending pods and their µGPU by exported tier and reason. `findings` are pending pods by exported tier
    and kind. `uncharged_pods` are pending pods that ask for more GPUs than is possible. `partial` are the gangs of all
    frameworks that hold GPUs and wait for the others of their pods. `fits` are pods that would fit now, by exported GPU
    model, pool and GPUs of each pod, `stranded` free GPUs by model, pool and reason, and `job_nodes` the nodes that the
    pods of jobs occupy, and how few would hold them, by exported tier. All three are empty until all pods on the nodes
    are known.
    """

    reasons: Mapping[tuple[str, str], tuple[int, int]] = {}
    findings: Mapping[tuple[str, str], int] = {}
    uncharged_pods: int = 0
    partial: PartialNow = PartialNow()
    fits: Mapping[tuple[str, str, int], int] = {}
    stranded: Mapping[tuple[str, str, str], int] = {}
    job_nodes: Mapping[str, tuple[int, int]] = {}


class WaitingPod(Struct, frozen=True, kw_only=True):
    """A pending pod with GPUs.

    `needs` is None until the pod's own object was read, as after a restart. It is pending since `since_us`, its
    creation, and `verdict` holds since `waits[-1].from_us`. `waits` are its reasons so far, the oldest first; the last
    one lasts. `quantity` is µGPU, `tier` and `tenant` are complete, not limited.
    """

    record: PodRecord
    tier: str
    tenant: str
    quantity: int
    needs: Needs | None
    situation: Situation
    verdict: Verdict
    since_us: int
    waits: Sequence[PendingSegment]

    @property
    def charged(self) -> int:
        """µGPU for which its wait is charged: all of them, or 0 if it asks for more than is possible."""
        return self.waits[-1].quantity if self.waits else 0

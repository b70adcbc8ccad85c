"""A pod that waits for GPUs, as whoever explains its wait needs it."""

from collections.abc import Sequence

from msgspec import Struct

from gputally.model.needs import Needs, Situation
from gputally.model.pod_record import PodRecord
from gputally.model.verdicts import Verdict
from gputally.model.waits import Wait


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
    waits: Sequence[Wait]

    @property
    def charged(self) -> int:
        """µGPU for which its wait is charged: all of them, or 0 if it asks for more than is possible."""
        return self.waits[-1].quantity if self.waits else 0

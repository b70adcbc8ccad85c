"""A workload whose pods with GPUs do not exist."""

from msgspec import Struct

from gputally.model.owner import Owner
from gputally.model.placement.needs import Needs
from gputally.model.placement.situation import QuotaState
from gputally.model.placement.verdict import Reason
from gputally.model.placement.wait import Uncharged
from gputally.model.price import PriceRange

UNKNOWN_TIER = "unknown"
"""Of a workload whose template cannot be read."""


class UncreatedWorkload(Struct, frozen=True, kw_only=True, gc=False):
    """A workload that lacks `pods` pods, each of `quantity` µGPU of `gpu_model`, "" for none in particular.

    `owner` would create them, for the job of `job_kind` and `job`. `reason` has held since `since_us`. `quota` is the
    one that refuses a pod. `text` is what the API server answered, or of a queued workload its queue. Without its
    template, all of it follows from an Event: `class_name` is None, and there are at least `pods`. `quantity` is 0 if
    nothing says what they request. `needs` are what decides on which nodes such a pod could run, None if unknown.
    `uncharged_pods` of them are not charged, for the reason `uncharged`, None if there are none.
    """

    owner: Owner
    job_kind: str
    job: str
    tier: str
    class_name: str | None
    pods: int
    quantity: int
    since_us: int
    reason: Reason
    text: str
    uncharged_pods: int = 0
    uncharged: Uncharged | None = None
    quota: QuotaState | None = None
    gpu_model: str = ""
    needs: Needs | None = None
    labels: tuple[tuple[str, str], ...] = ()
    tenant: str = ""
    prices: PriceRange = PriceRange()

    @property
    def is_at_least(self) -> bool:
        """Whether it may lack more pods than are known."""
        return self.class_name is None

    @property
    def whole(self) -> int:
        """µGPU of all pods that it lacks."""
        return self.pods * self.quantity

    @property
    def charged_pods(self) -> int:
        """The pods for which the wait is charged."""
        return self.pods - self.uncharged_pods

    @property
    def charged(self) -> int:
        """µGPU of the pods that are charged."""
        return self.charged_pods * self.quantity

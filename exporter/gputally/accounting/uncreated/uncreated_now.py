"""The pods that were not created, at one instant, in sums with bounded labels."""

from collections.abc import Mapping

from msgspec import Struct

from gputally.model.waits import Uncharged


class UncreatedNow(Struct, frozen=True, kw_only=True):
    """Sums of the pods with GPUs that workloads lack.

    `reasons` are pods and their µGPU by exported tier and reason. `refused` are the µGPU of pods that a quota refuses,
    by the exported tier and tenant of the quota; None unless both are watched. `unmeasured_workloads` are those
    by reason whose wait is not charged, as no Event states a credible number of GPUs; None unless refusals are watched.
    `uncharged_pods` are the pods whose wait is not charged, as the cluster could never give as many GPUs.
    """

    reasons: Mapping[tuple[str, str], tuple[int, int]] = {}
    refused: Mapping[tuple[str, str], int] | None = None
    unmeasured_workloads: Mapping[str, int] | None = None
    uncharged_pods: Mapping[Uncharged, int] = {}

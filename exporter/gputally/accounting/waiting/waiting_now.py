"""The waits of all pods at one instant, in sums with bounded labels."""

from collections.abc import Mapping

from msgspec import Struct

from gputally.model.partial_gangs import PartialNow


class WaitingNow(Struct, frozen=True, kw_only=True):
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

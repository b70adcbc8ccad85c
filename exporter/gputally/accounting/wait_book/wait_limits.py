"""How many of the GPUs that are waited for count: no more than the cluster could ever give.

Anyone may create a pod or a Job that asks for any number. A wait that was charged for all of them would spoil the sums
of everybody, for ever: a counter never falls, and a float has 53 bits.
"""

from typing import Final

from gputally.accounting.nodes.most_capacity import ALL, MostCapacity
from gputally.model.rules import WaitCeilings
from gputally.model.units import GPU
from gputally.model.waits import Uncharged

_WAITS_OF_NAMESPACE: Final = 100
"""The largest waits of workloads that one namespace may have at once; with more, the oldest are charged."""


class WaitLimits:
    """Limits in µGPU: the most that the cluster ever had of a GPU model, or the configured ceiling if that is more."""

    def __init__(self, ceilings: WaitCeilings, most: MostCapacity) -> None:
        self._workload, self._pod = ceilings.gpus * GPU, ceilings.gpus_per_pod * GPU
        self._most = most

    def of_pod(self, gpu_model: str) -> int:
        """Of one pod that selects this model, "" for none in particular; one that asks for more is impossible."""
        return max(self._pod, self._most.of(gpu_model).on_one_node)

    def of_workload(self, gpu_model: str) -> int:
        """Of all pods that one workload lacks."""
        return max(self._workload, self._most.of(gpu_model).quantity)

    def charged(self, quantity: int, gpu_model: str) -> int:
        """The µGPU for which the wait of a pod is charged: all of them, or none if it is impossible."""
        return quantity if quantity <= self.of_pod(gpu_model) else 0

    def charged_pods(self, pods: int, quantity: int, gpu_model: str, *, others: int) -> tuple[int, Uncharged | None]:
        """Of the `pods` pods of `quantity` µGPU each that a workload lacks, those that are charged; and why not all.

        `others` are the µGPU for which other workloads of its namespace are charged.
        """
        if not self.charged(quantity, gpu_model):
            return 0, Uncharged.IMPOSSIBLE
        own = min(pods, self.of_workload(gpu_model) // quantity)
        left = max(0, _WAITS_OF_NAMESPACE * self.of_workload(ALL) - others) // quantity
        if left < own:
            return left, Uncharged.NAMESPACE_LIMIT
        return own, Uncharged.ABOVE_LIMIT if own < pods else None

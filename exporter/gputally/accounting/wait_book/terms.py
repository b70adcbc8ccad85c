"""Says what a wait is charged as: its tier and tenant, its prices, and no more GPUs than the cluster could ever give.

Anyone may create a pod or a Job that asks for any number. A wait that was charged for all of them would spoil the sums
of everybody, for ever: a counter never falls, and a float has 53 bits.
"""

from typing import Final

from msgspec.structs import replace

from gputally.accounting.base.compact import shared
from gputally.accounting.nodes.most_capacity import ALL, MostCapacity
from gputally.accounting.terms.tier import tier_of_pod
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.accounting.wait_book.prices import CandidateNodePrices
from gputally.model.needs import Needs
from gputally.model.pod_record import PodRecord
from gputally.model.price import PriceRange
from gputally.model.rules import ChargeCeilings, Rules
from gputally.model.units import GPU
from gputally.model.verdicts import Reason
from gputally.model.waits import (
    CAUSE_OF,
    NOBODY,
    UNKNOWN_TIER,
    Occupant,
    PendingSegment,
    Uncharged,
    UncreatedPodsSegment,
    UncreatedWorkload,
    WaitCause,
)
from gputally.shares.schemes import requested

_WAITS_OF_NAMESPACE: Final = 100
"""The largest waits of workloads that one namespace may have at once; with more, the oldest are charged."""


class ChargeLimits:
    """Limits in µGPU: the most that the cluster ever had of a GPU model, or the configured ceiling if that is more."""

    def __init__(self, ceilings: ChargeCeilings, most: MostCapacity) -> None:
        self._workload, self._pod = ceilings.gpus * GPU, ceilings.gpus_per_pod * GPU
        self._most = most

    def of_pod(self, gpu_model: str) -> int:
        """The limit for a pod that selects this model, "" for none in particular; a larger request is impossible."""
        return max(self._pod, self._most.of(gpu_model).on_one_node)

    def of_workload(self, gpu_model: str) -> int:
        """The limit for all pods that one workload lacks."""
        return max(self._workload, self._most.of(gpu_model).quantity)

    def charged(self, quantity: int, gpu_model: str) -> int:
        """The µGPU for which the wait of a pod is charged: all of them, or none if it is impossible."""
        return quantity if quantity <= self.of_pod(gpu_model) else 0

    def charged_pods(self, pods: int, quantity: int, gpu_model: str, *, others: int) -> tuple[int, Uncharged | None]:
        """How many of the `pods` pods of `quantity` µGPU each that a workload lacks are charged; and why not all are.

        `others` are the µGPU for which other workloads of its namespace are charged.
        """
        if not self.charged(quantity, gpu_model):
            return 0, Uncharged.IMPOSSIBLE
        own = min(pods, self.of_workload(gpu_model) // quantity)
        left = max(0, _WAITS_OF_NAMESPACE * self.of_workload(ALL) - others) // quantity
        if left < own:
            return left, Uncharged.NAMESPACE_LIMIT
        return own, Uncharged.ABOVE_LIMIT if own < pods else None


class ChargeTerms:
    """Builds waits, without their times.

    A wait admits no label value: anyone may create pods that are never bound, with whatever tiers the rules make of
    them. Its tier is exported as `other` until it is known: from a PriorityClass, the rules, or a pod that was bound.
    """

    def __init__(self, rules: Rules, limiter: LabelLimiter, prices: CandidateNodePrices, most: MostCapacity) -> None:
        self.prices = prices
        self.limits = ChargeLimits(rules.waits, most)
        self._rules = rules
        self._shown = limiter.shown

    def wait_of(
        self,
        record: PodRecord,
        tenant: str,
        prices: PriceRange | None,
        *,
        reason: Reason = Reason.SCHEDULABLE,
        cause: WaitCause = WaitCause.OTHER,
    ) -> PendingSegment:
        """The wait of a pod, charged to nobody; by default, the time that its scheduler takes.

        An impossible one counts no GPUs. Without `prices`, they are not found out yet.
        """
        tier = tier_of_pod(record, self._rules)
        quantity = self.limits.charged(requested(record.units, self._rules), record.selected_model)
        prices = prices if quantity else PriceRange()
        lowest, highest = prices or PriceRange()
        return PendingSegment(
            reason=reason,
            cause=cause,
            tier=tier,
            tenant=tenant,
            quantity=quantity,
            from_us=0,
            shown=shared((self._shown("tier", tier), NOBODY)),
            price=lowest,
            highest=highest,
            awaits_price=prices is None,
        )

    def charged_to(self, wait: PendingSegment, occupant: Occupant | None, quantity: int) -> PendingSegment:
        """The wait with `quantity` µGPU of it charged to the occupant."""
        if occupant is None and wait.occupant is None:
            return wait
        by = self._shown("tier", occupant.tier) if occupant else NOBODY
        occupied = quantity if occupant and quantity != wait.quantity else None
        return replace(wait, occupant=occupant, occupied=occupied, shown=shared((wait.shown[0], by)))

    def prices_of(self, record: PodRecord, needs: Needs | None, *, is_urgent: bool = False) -> PriceRange | None:
        """The prices of a GPU-hour for the pod on the nodes that it selects, see `CandidateNodePrices.of`."""
        return self.prices.of(needs, tier_of_pod(record, self._rules), is_urgent=is_urgent)

    def uncreated(
        self, workload: UncreatedWorkload, tenant: str, prices: PriceRange | None, *, uid: str, is_queued: bool
    ) -> UncreatedPodsSegment:
        """The wait of a workload for those of its pods that are charged, with `prices` as in `wait_of`."""
        owner, (lowest, highest) = workload.owner, prices or PriceRange()
        return UncreatedPodsSegment(
            namespace=owner.namespace,
            uid=uid,
            kind=owner.reference.kind,
            name=owner.reference.name,
            job_kind=workload.job_kind,
            job=workload.job,
            tier=workload.tier,
            tenant=tenant,
            pods=workload.charged_pods,
            quantity=workload.quantity,
            reason=workload.reason,
            cause=CAUSE_OF[workload.reason],
            is_queued=is_queued,
            is_at_least=workload.is_at_least,
            from_us=0,
            shown=self.shown_tier(workload.tier),
            price=lowest,
            highest=highest,
            awaits_price=prices is None,
        )

    def shown_tier(self, tier: str) -> str:
        """The exported tier of pods that do not exist."""
        return tier if tier == UNKNOWN_TIER else self._shown("tier", tier)

"""What the wait of a pod is charged as: its tier and tenant, and the price of the GPU model that it selects."""

from gputally.accounting.nodes.nodes import Nodes
from gputally.accounting.prices.pricing import Pricing
from gputally.accounting.shared import shared
from gputally.accounting.terms.tier import tier_of_pod
from gputally.accounting.totals.label_limiter import NOBODY, LabelLimiter
from gputally.accounting.waiting.wait_limits import WaitLimits
from gputally.model.placement.uncreated_wait import UncreatedWait
from gputally.model.placement.uncreated_workload import UNKNOWN_TIER, UncreatedWorkload
from gputally.model.placement.verdict import Reason
from gputally.model.placement.wait import CAUSE_OF, Occupant, Wait, WaitCause
from gputally.model.pod import PodRecord
from gputally.model.price import Asset, Price
from gputally.model.rules import Rules
from gputally.shares.schemes import requested


class WaitTerms:
    """Builds waits, without their times.

    A wait admits no label value: anyone may create pods that are never bound, with whatever tiers the rules make of
    them. Its tier is exported as `other` until it is known: from a PriorityClass, the rules, or a pod that was bound.
    """

    def __init__(self, rules: Rules, limiter: LabelLimiter, pricing: Pricing, nodes: Nodes) -> None:
        self._rules = rules
        self.limits = WaitLimits(rules.waits, nodes.most)
        self._shown = limiter.shown
        self._pricing = pricing
        self._nodes = nodes
        self._assets: dict[str, set[Asset]] | None = None

    def nodes_changed(self) -> None:
        """Prices may differ from now on."""
        self._assets = None

    def wait_of(
        self,
        record: PodRecord,
        tenant: str,
        *,
        reason: Reason = Reason.SCHEDULABLE,
        cause: WaitCause = WaitCause.OTHER,
        occupant: Occupant | None = None,
    ) -> Wait:
        """The wait of a pod; by default, the time that its scheduler takes. An impossible one counts no GPUs."""
        tier = tier_of_pod(record, self._rules)
        quantity = self.limits.charged(requested(record.units, self._rules), record.selected_model)
        by = self._shown("tier", occupant.tier) if occupant else NOBODY
        return Wait(
            reason=reason,
            cause=cause,
            tier=tier,
            tenant=tenant,
            quantity=quantity,
            from_us=0,
            occupant=occupant,
            shown=shared((self._shown("tier", tier), by)),
            price=self.price_of(record.selected_model, tier) if quantity else None,
        )

    def uncreated(self, workload: UncreatedWorkload, tenant: str, *, uid: str, is_queued: bool) -> UncreatedWait:
        """The wait of a workload for those of its pods that are charged."""
        owner = workload.owner
        return UncreatedWait(
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
            price=self.price_of(workload.gpu_model, workload.tier),
        )

    def shown_tier(self, tier: str) -> str:
        """The exported tier of pods that do not exist."""
        return tier if tier == UNKNOWN_TIER else self._shown("tier", tier)

    def price_of(self, model: str, tier: str) -> Price | None:
        """The price of a GPU-hour of the model for that tier; None without a model, or if the book has none.

        Rules may match more of a node than its model. Then the prices of the nodes with this model count, of several
        ones the lowest.
        """
        book, at_us = self._pricing.book, self._pricing.now_us
        if book is None or not model:
            return None
        if price := book.price_of(Asset(gpu_model=model), tier=tier, at_us=at_us):
            return price
        prices = (book.price_of(each, tier=tier, at_us=at_us) for each in self._assets_by_model().get(model, ()))
        return min((each for each in prices if each), key=lambda each: (each.rate, each.key), default=None)

    def _assets_by_model(self) -> dict[str, set[Asset]]:
        if self._assets is None:
            self._assets = {}
            for account in self._nodes.accounts.values():
                if account.record.gone_us is None and account.record.facts:
                    asset = account.record.facts[-1][1].asset
                    self._assets.setdefault(asset.gpu_model, set()).add(asset)
        return self._assets

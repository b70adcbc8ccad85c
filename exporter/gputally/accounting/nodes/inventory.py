"""Counts of existing nodes."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from gputally.accounting.nodes.node_account import NodeAccount
from gputally.accounting.nodes.node_facts import is_never_offered
from gputally.accounting.prices.pricing import Pricing
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.model.node_record import LabelConflict


class Inventory(NamedTuple):
    """Existing nodes with GPUs, nodes with conflicting labels, unpriced µGPU, and µGPU that were never offered.

    Nodes whose GPU labels contradict their units are by reason, 0 if there are none. The µGPU are by exported
    (gpu_model, pool), with 0 for groups without any.
    """

    nodes: int
    purchase_conflicts: int
    label_conflicts: dict[LabelConflict, int]
    unpriced: dict[tuple[str, str], int]
    never_offered: dict[tuple[str, str], int]


def inventory_of(accounts: Iterable[NodeAccount], pricing: Pricing, limiter: LabelLimiter, *, at_us: int) -> Inventory:
    """The inventory at `at_us`."""
    facts = [each.record.facts[-1][1] for each in accounts if each.record.gone_us is None]
    unpriced: dict[tuple[str, str], int] = {}
    never_offered: dict[tuple[str, str], int] = {}
    for each in facts:
        if each.physical:
            group = (limiter.shown("gpu_model", each.gpu_model), limiter.shown("pool", each.pool))
            missing = 0 if pricing.of_capacity(each.asset, at_us) else each.physical
            unpriced[group] = unpriced.get(group, 0) + missing
            counted = each.physical if is_never_offered(each.physical, each.offered) else 0
            never_offered[group] = never_offered.get(group, 0) + counted
    return Inventory(
        nodes=sum(1 for each in facts if each.physical),
        purchase_conflicts=sum(1 for each in facts if each.purchase_conflict),
        label_conflicts=dict.fromkeys(LabelConflict, 0) | Counter(each.conflict for each in facts if each.conflict),
        unpriced=unpriced,
        never_offered=never_offered,
    )

"""What a wait costs: what its GPUs would have cost. Of pods without a price, why, and what they may cost."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gputally.accounting.waiting.waiting_pod import WaitingPod
from gputally.export.live.allocations_route import hourly_text
from gputally.model.placement.needs import Needs
from gputally.model.placement.pending_document import CostRange
from gputally.model.placement.wait import Wait
from gputally.model.price import Asset
from gputally.pending_api.occupants import cost_text
from gputally.pending_api.pending_now import PendingNow
from gputally.placement.candidates import candidates_for, is_large

NO_MODEL = "it selects no GPU model"
IMPOSSIBLE = "it asks for more GPUs than a node can have, so its wait is not charged"


class Unpriced(NamedTuple):
    """Why a pod has no price, "" if it has one or there is no price book; and what it may cost."""

    reason: str = ""
    cost_range: CostRange | None = None


def unpriced(now: PendingNow, waiting: WaitingPod) -> Unpriced:
    """Of a pod that waits, with its range."""
    found, model = Unpriced(unpriced_reason(now, waiting)), waiting.record.selected_model
    if found.reason and model and now.assets and all(each.gpu_model != model for each in now.assets.values()):
        return Unpriced(f"no node has the GPU model {model}")
    if found.reason != NO_MODEL or now.book is None or waiting.needs is None:
        return found
    assets = _possible(now, waiting.needs)
    if not assets:
        return Unpriced(f"{NO_MODEL}, and no node could hold it")
    return Unpriced(NO_MODEL, _range(now, assets, tier=waiting.tier, quantity=waiting.quantity))


def unpriced_reason(now: PendingNow, waiting: WaitingPod) -> str:
    """Why the pod has no price, as far as that needs no look at the nodes; "" if it has one."""
    if not now.currency or (waiting.waits and waiting.waits[-1].price):
        return ""
    if waiting.quantity and waiting.waits and not waiting.waits[-1].quantity:
        return IMPOSSIBLE
    if model := waiting.record.selected_model:
        return f"the price book has no price for {model}"
    return NO_MODEL


def waited_cost(found: Iterable[Sequence[Wait]], now_us: int) -> str | None:
    """What these waits have cost so far, a decimal; None if any part has no price, or there is none."""
    total, parts = 0, [part for each in found for part in each]
    for each in parts:
        if each.price is None:
            return None
        end_us = now_us if each.to_us is None else each.to_us
        total += each.price.cost(each.quantity * max(0, end_us - each.from_us))
    return cost_text(total) if parts else None


def _possible(now: PendingNow, needs: Needs) -> set[Asset]:
    """What the nodes are that accept the pod and are large enough, whatever runs there."""
    return {
        now.assets[name]
        for group in candidates_for(needs, now.room).accepting
        for name, node in group.nodes.items()
        if name in now.assets and is_large(needs.amounts, node.offered)
    }


def _range(now: PendingNow, assets: Iterable[Asset], *, tier: str, quantity: int) -> CostRange | None:
    """None if none of the assets has a price."""
    assert now.book
    rates: dict[str, list[int]] = {}
    without: set[str] = set()
    for each in assets:
        if price := now.book.price_of(each, tier=tier, at_us=now.at_us):
            rates.setdefault(each.gpu_model, []).append(price.rate)
        else:
            without.add(each.gpu_model)
    if not rates:
        return None
    known = [rate for found in rates.values() for rate in found]
    return CostRange(
        lowest=hourly_text(min(known) * quantity),
        highest=hourly_text(max(known) * quantity),
        gpu_models=sorted(rates),
        unpriced_models=sorted(without),
    )

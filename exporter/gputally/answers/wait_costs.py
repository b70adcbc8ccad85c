"""What a wait costs: what its GPUs would have cost, and why a pod has no price."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from gputally.accounting.fleet.pending_now import PendingNow
from gputally.accounting.waiting.snapshot import WaitingPod
from gputally.answers.allocations import hourly_text
from gputally.answers.occupants import cost_text
from gputally.model.api.pending import CostRange
from gputally.model.price import Asset
from gputally.model.waits import PendingSegment
from gputally.placement.candidates import assets_for

BEYOND_NODES: Final = "more GPUs than any node ever had, and than waits.ceiling_gpus_per_pod"
NO_PRICE: Final = "the nodes that it selects have no price"
IMPOSSIBLE: Final = f"it asks for {BEYOND_NODES}, so its wait is not charged"
_NO_NODE: Final = "no node has the labels that it selects"


class CostToDate(NamedTuple):
    """What waits have cost at least and, unless that is the same, at most: decimals, None without a price."""

    lowest: str | None = None
    highest: str | None = None


class Unpriced(NamedTuple):
    """Why a pod has no price, "" if it has one or there is no price book; and the range of its prices, if several."""

    reason: str = ""
    cost_range: CostRange | None = None


def unpriced(now: PendingNow, waiting: WaitingPod) -> Unpriced:
    """Why a pod that waits has no price, with the range of its prices."""
    reason, needs = unpriced_reason(now, waiting), waiting.needs
    if now.book is None or needs is None or reason == IMPOSSIBLE:
        return Unpriced(reason)
    assets = assets_for(needs, now.room)
    if assets:
        return Unpriced(reason, _range(now, assets, tier=waiting.tier, quantity=waiting.quantity))
    if not reason:
        return Unpriced()
    if assets is not None:
        return Unpriced("no node that it selects could hold it")
    model = waiting.record.selected_model
    return Unpriced(f"no node has the GPU model {model}" if model and model not in now.models else _NO_NODE)


def unpriced_reason(now: PendingNow, waiting: WaitingPod) -> str:
    """Why the pod has no price, as far as that needs no look at the nodes; "" if it has one."""
    if not now.currency or (waiting.waits and waiting.waits[-1].price):
        return ""
    if waiting.quantity and waiting.waits and not waiting.charged:
        return IMPOSSIBLE
    return NO_PRICE


def waited_cost(found: Iterable[Sequence[PendingSegment]], now_us: int) -> CostToDate:
    """What these waits have cost so far; None if any part has no price, or there is none."""
    lowest, highest, parts = 0, 0, [part for each in found for part in each]
    for each in parts:
        if each.price is None:
            return CostToDate()
        end_us = now_us if each.to_us is None else each.to_us
        gpu_time = each.quantity * max(0, end_us - each.from_us)
        lowest += each.price.cost(gpu_time)
        highest += (each.highest or each.price).cost(gpu_time)
    if not parts:
        return CostToDate()
    return CostToDate(cost_text(lowest), cost_text(highest) if highest != lowest else None)


def _range(now: PendingNow, assets: Iterable[Asset], *, tier: str, quantity: int) -> CostRange | None:
    """None if none of the assets has a price, or all have one and the same."""
    assert now.book
    rates: dict[str, list[int]] = {}
    without: set[str] = set()
    for each in assets:
        if price := now.book.price_of(each, tier=tier, at_us=now.at_us):
            rates.setdefault(each.gpu_model, []).append(price.rate)
        else:
            without.add(each.gpu_model)
    known = [rate for found in rates.values() for rate in found]
    if not known or (min(known) == max(known) and not without):
        return None
    return CostRange(
        lowest=hourly_text(min(known) * quantity),
        highest=hourly_text(max(known) * quantity),
        gpu_models=sorted(rates),
        unpriced_models=sorted(without),
    )

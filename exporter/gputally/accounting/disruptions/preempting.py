"""Preemptions under way: the victims that still have their GPUs."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from gputally.accounting.disruptions.preemptions import UNKNOWN, Tiers
from gputally.model.disruptions import Preemption


class Preempting(Struct, frozen=True, kw_only=True):
    """Victims of one pair of tiers; `quantity` in µGPU, `oldest_us` is the first deletion request (µs)."""

    pods: int
    quantity: int
    oldest_us: int


def preempting(unreleased: Iterable[Preemption], shown: Callable[[str], str]) -> dict[Tiers, Preempting]:
    """The victims that have not released their GPUs yet, by exported tiers of victim and preemptor.

    `shown` returns how a tier is exported. The preemptor of a preemption that is not counted yet is unknown.
    """
    found: dict[Tiers, Preempting] = {}
    for each in unreleased:
        tiers = each.counted or (shown(each.victim_tier), UNKNOWN)
        since_us = each.decided_us if each.requested_us is None else each.requested_us
        before = found.get(tiers, Preempting(pods=0, quantity=0, oldest_us=since_us))
        found[tiers] = Preempting(
            pods=before.pods + 1,
            quantity=before.quantity + each.quantity,
            oldest_us=min(before.oldest_us, since_us),
        )
    return found

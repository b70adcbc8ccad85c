"""How long pods waited that are like one that waits."""

from collections.abc import Iterator
from typing import Final

from gputally.accounting.terms.tier import tier_of_pod
from gputally.model.api.why import SimilarWaits
from gputally.model.units import GPU, US_PER_SECOND, to_datetime
from gputally.pending_api.pending_now import PendingNow, Viewer
from gputally.shares.schemes import Units, requested

_LATEST: Final = 100
"""So many of the latest pods count."""


def similar_waits(now: PendingNow, viewer: Viewer, *, tier: str, units: Units) -> SimilarWaits | None:
    """The waits of the pods of this tier and request that were bound last; None without any.

    Pods that exist are known, and of those that are gone the ones that were bound last; only pods that the reader may
    know count.
    """
    quantity = requested(units, now.rules)
    known = {**dict(_gone(now, viewer, tier, quantity)), **dict(_present(now, viewer, tier, units))}
    latest = sorted(known.values())[-_LATEST:]
    if not latest:
        return None
    waits = sorted(waited_us for _, waited_us in latest)
    return SimilarWaits(
        tier=tier,
        gpus=quantity / GPU,
        pods=len(waits),
        median_seconds=_quantile(waits, 50) / US_PER_SECOND,
        p90_seconds=_quantile(waits, 90) / US_PER_SECOND,
        since=to_datetime(latest[0][0]),
    )


def _present(now: PendingNow, viewer: Viewer, tier: str, units: Units) -> Iterator[tuple[str, tuple[int, int]]]:
    """When each pod was bound, and how long it had waited (µs), by UID."""
    for uid, record in now.records.items():
        if record.units != units or record.scheduled_us is None or not record.terms:
            continue
        if viewer.sees(record.terms[-1].tenant) and tier_of_pod(record, now.rules) == tier:
            yield uid, (record.scheduled_us, max(0, record.scheduled_us - record.created_us))


def _gone(now: PendingNow, viewer: Viewer, tier: str, quantity: int) -> Iterator[tuple[str, tuple[int, int]]]:
    for each in now.finished:
        first, last = each.waits[0], each.waits[-1]
        if last.to_us is None or (last.tier, last.quantity) != (tier, quantity):
            continue
        if viewer.sees(last.tenant):
            yield each.uid, (last.to_us, last.to_us - first.from_us)


def _quantile(ascending: list[int], percent: int) -> int:
    """The smallest value that at least so many percent of all do not exceed."""
    return ascending[max(0, -(-len(ascending) * percent // 100) - 1)]

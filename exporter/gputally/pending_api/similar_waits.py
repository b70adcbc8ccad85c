"""How long pods waited that are like one that waits."""

from typing import Final

from gputally.accounting.terms.tier import tier_of_pod
from gputally.model.placement.why_document import SimilarWaits
from gputally.model.units import GPU, US_PER_SECOND, to_datetime
from gputally.pending_api.pending_now import PendingNow
from gputally.shares.schemes import Units, covered

_LATEST: Final = 100
"""So many of the latest pods count."""


def similar_waits(now: PendingNow, *, tier: str, units: Units) -> SimilarWaits | None:
    """The waits of the pods of this tier and request that were bound last, of those that exist; None without any."""
    bound = [
        (record.scheduled_us, max(0, record.scheduled_us - record.created_us))
        for record in now.records.values()
        if record.scheduled_us is not None and record.units == units and tier_of_pod(record, now.rules) == tier
    ]
    if not bound:
        return None
    latest = sorted(bound, reverse=True)[:_LATEST]
    waits = sorted(waited for _, waited in latest)
    return SimilarWaits(
        tier=tier,
        gpus=covered(units, (), now.rules) / GPU,
        pods=len(waits),
        median_seconds=_quantile(waits, 0.5) / US_PER_SECOND,
        p90_seconds=_quantile(waits, 0.9) / US_PER_SECOND,
        since=to_datetime(latest[-1][0]),
    )


def _quantile(ascending: list[int], part: float) -> int:
    """The smallest value that at least this part of all is not above."""
    index = -(-len(ascending) * round(part * 100) // 100) - 1
    return ascending[max(0, index)]

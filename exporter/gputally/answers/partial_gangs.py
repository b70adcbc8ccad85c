"""The partial gangs that a reader may know, with what they hold and cost."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from gputally.accounting.fleet.active_pods import holding
from gputally.accounting.fleet.pending_now import PendingNow
from gputally.answers.allocations import cost_per_hour
from gputally.answers.occupants import cost_text
from gputally.answers.pending_requests import Filters, seen_gangs
from gputally.answers.viewer import Viewer
from gputally.model.allocation import Segment
from gputally.model.api.pending import GangEntry
from gputally.model.partial_gangs import PartialGang
from gputally.model.units import GPU, GPU_HOUR, to_datetime

if TYPE_CHECKING:
    from gputally.model.price import Price

MOST_GANGS: Final = 100
"""In one document."""


def gang_entries(now: PendingNow, filters: Filters, viewer: Viewer) -> list[GangEntry]:
    """The partial gangs that the reader may know and that match all filters.

    Deadlocked ones come first, then those that wait for the longest time.
    """
    deadlocked = {key for keys in now.deadlocks for key in keys}
    seen = seen_gangs(now, filters, viewer)
    seen.sort(key=lambda each: (each.key not in deadlocked, each.since_us, each.key))
    return [_entry(now, each, viewer) for each in seen[:MOST_GANGS]]


def gang_entry_of(now: PendingNow, uid: str, viewer: Viewer) -> GangEntry | None:
    """The partial gang of a pod; None if it is in none."""
    for each in now.gangs:
        if viewer.sees(each.tenant) and (uid in each.pods or uid in each.pending):
            return _entry(now, each, viewer)
    return None


def _entry(now: PendingNow, gang: PartialGang, viewer: Viewer) -> GangEntry:
    segments = [each for uid in gang.pods if uid in now.records for each in now.records[uid].segments]
    return GangEntry(
        kind=gang.kind,
        namespace=gang.namespace,
        name=gang.name,
        tier=gang.tier,
        tenant=gang.tenant,
        bound=gang.bound,
        needed=gang.needed,
        gpus=gang.quantity / GPU,
        since=to_datetime(gang.since_us),
        gpu_hours=sum(_gpu_time(each, now.at_us) for each in segments) / GPU_HOUR,
        cost=_cost(segments, now.at_us),
        cost_per_hour=cost_per_hour(_prices(now, gang)),
        deadlocked_with=list(_others(now, gang, viewer)),
        not_compared=now.not_compared.get(gang.key, ""),
        tasks=list(gang.tasks),
    )


def _gpu_time(segment: Segment, at_us: int) -> int:
    end_us = at_us if segment.end_us is None else min(segment.end_us, at_us)
    return segment.quantity * max(0, end_us - segment.start_us)


def _cost(segments: Iterable[Segment], at_us: int) -> str | None:
    total = 0
    for each in segments:
        if each.price is None:
            return None
        total += each.price.cost(_gpu_time(each, at_us))
    return cost_text(total)


def _prices(now: PendingNow, gang: PartialGang) -> "list[tuple[int, Price | None]]":
    """The µGPU that its pods hold, with their prices."""
    return [pair for uid in gang.pods if uid in now.records for pair in holding(now.records[uid]).prices]


def _others(now: PendingNow, gang: PartialGang, viewer: Viewer) -> Iterator[str]:
    keys = {key for each in now.deadlocks if gang.key in each for key in each if key != gang.key}
    for other in now.gangs:
        if other.key in keys:
            named = f"{other.kind} {other.namespace}/{other.name}"
            yield named if viewer.sees(other.tenant) else f"a gang of tier {other.tier} of another tenant"

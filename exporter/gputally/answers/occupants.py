"""Who holds what pods wait for, one by one and as partial gangs, as far as the reader may know."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

from gputally.accounting.fleet.active_pods import ActivePod, holding
from gputally.accounting.fleet.pending_now import PendingNow
from gputally.accounting.fleet.work_at_risk import line_of
from gputally.accounting.terms.tier import serves
from gputally.answers.allocations import cost_per_hour
from gputally.answers.pending_filters import Filters, seen_gangs
from gputally.answers.viewer import Viewer
from gputally.model.allocation import Segment
from gputally.model.api.pending import GangEntry
from gputally.model.api.why import OccupantPod
from gputally.model.partial_gangs import PartialGang
from gputally.model.pod_record import PodRecord
from gputally.model.units import COST_UNIT, GPU, GPU_HOUR, to_datetime

if TYPE_CHECKING:
    from gputally.model.price import Price

_PLACES: Final = 6
"""Decimals of costs that are no bill."""
OF_OTHERS: Final = "another tenant's pod"
"""Why a pod may not be preempted, for a reader who may not know its priority."""
MOST_OCCUPANTS: Final = 50
"""In one answer; further ones are counted."""
MOST_GANGS: Final = 100
"""In one document."""


class Rank(NamedTuple):
    """What decides whom a waiting pod may preempt."""

    priority: int
    may_preempt: bool
    name: str
    """The name of its PriorityClass."""


def occupants(now: PendingNow, uids: Iterable[str], by: Rank, viewer: Viewer) -> list[OccupantPod]:
    """The pods with these UIDs, those with the most GPUs first.

    For a restricted reader, other tenants' pods are summed by tier and whether they may be preempted: neither their
    number nor why they may not be preempted, which tells their priority. Pods without GPUs are one entry of no tier.
    """
    found: list[OccupantPod] = []
    hidden: dict[tuple[str, bool], list[OccupantPod]] = {}
    others = 0
    for uid in dict.fromkeys(uids):
        record = now.records.get(uid)
        if record is None or not record.segments:
            others += 1
            continue
        pod = holding(record)
        entry = _entry(now, record, pod, by)
        if viewer.sees(pod.tenant):
            found.append(entry)
        else:
            hidden.setdefault((entry.tier, entry.may_be_preempted), []).append(entry)
    found += [_counted(key, each) for key, each in hidden.items()]
    if others:
        shown = others if viewer.tenants is None else None
        found.append(OccupantPod(tier="", gpus=0, pods=shown, may_be_preempted=False, why_not="without GPUs"))
    return sorted(found, key=lambda each: (-each.gpus, each.namespace or "", each.pod or ""))


def _entry(now: PendingNow, record: PodRecord, pod: ActivePod, by: Rank) -> OccupantPod:
    why_not, running = _why_not(record, by), now.running.get(record.uid)
    risk = line_of(running, at_us=now.at_us) if running else None
    cost = risk.costs.get(now.currency) if risk else None
    return OccupantPod(
        tier=pod.tier,
        gpus=pod.quantity / GPU,
        tenant=pod.tenant,
        namespace=pod.namespace,
        pod=pod.name,
        uid=pod.uid,
        node=pod.node,
        state=pod.state,
        priority=record.priority or 0,
        cost_per_hour=cost_per_hour(pod.prices),
        may_be_preempted=not why_not,
        why_not=why_not,
        is_lost_upper_bound=risk is not None and risk.is_upper_bound,
        serves_users=serves(pod.tier, now.rules),
        lost_gpu_hours=risk.gpu_time / GPU_HOUR if risk else None,
        lost_cost=None if cost is None else cost_text(cost),
    )


def _why_not(record: PodRecord, by: Rank) -> str:
    """Why the pod may not be preempted, "" if it may."""
    theirs = record.priority or 0
    if record.deletion_us is not None:
        return "it is stopping"
    if theirs == by.priority:
        return "same priority"
    if theirs > by.priority:
        return "higher priority"
    if not by.may_preempt:
        return f"{by.name} never preempts" if by.name else "it never preempts"
    return ""


def _counted(key: tuple[str, bool], pods: Sequence[OccupantPod]) -> OccupantPod:
    """Pods of other tenants, of which only the tier and the GPUs may be known."""
    tier, may_be_preempted = key
    why_not = "" if may_be_preempted else OF_OTHERS
    gpus = sum(each.gpus for each in pods)
    return OccupantPod(tier=tier, gpus=gpus, pods=None, may_be_preempted=may_be_preempted, why_not=why_not)


def limited(found: list[OccupantPod]) -> tuple[list[OccupantPod], int]:
    """At most `MOST_OCCUPANTS`, and how many pods there are besides."""
    return found[:MOST_OCCUPANTS], sum(each.pods or 1 for each in found[MOST_OCCUPANTS:])


def cost_text(cost: int) -> str:
    """An exact cost (see `COST_UNIT`), rounded: of what is no bill."""
    return decimal_text(round(Decimal(cost) / COST_UNIT, _PLACES))


def decimal_text(amount: Decimal) -> str:
    """Without an exponent and without zeros at the end."""
    return f"{amount.normalize():f}"


def gang_entries(now: PendingNow, filters: Filters, viewer: Viewer) -> list[GangEntry]:
    """The partial gangs that the reader may know and that match all filters.

    Deadlocked ones come first, then those that wait for the longest time.
    """
    deadlocked = {key for keys in now.deadlocks for key in keys}
    seen = seen_gangs(now, filters, viewer)
    seen.sort(key=lambda each: (each.key not in deadlocked, each.since_us, each.key))
    return [_gang_entry(now, each, viewer) for each in seen[:MOST_GANGS]]


def gang_entry_of(now: PendingNow, uid: str, viewer: Viewer) -> GangEntry | None:
    """The partial gang of a pod; None if it is in none."""
    for each in now.gangs:
        if viewer.sees(each.tenant) and (uid in each.pods or uid in each.pending):
            return _gang_entry(now, each, viewer)
    return None


def _gang_entry(now: PendingNow, gang: PartialGang, viewer: Viewer) -> GangEntry:
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

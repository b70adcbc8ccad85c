"""Restores the fleet from what an earlier process saved, also if the clock of that was ahead."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from gputally.accounting.changes import Saved
from gputally.accounting.totals.label_limiter import KnownValue
from gputally.accounting.totals.series import Series, is_shown
from gputally.accounting.totals.total import Total
from gputally.model.allocation import End, Ending, Gap, Terms
from gputally.model.kube.kinds import Kind
from gputally.model.node_record import NodeRecord
from gputally.model.pod_record import INCOMPLETE, PodRecord
from gputally.model.units import US_PER_SECOND

if TYPE_CHECKING:
    from gputally.accounting.fleet.fleet import Fleet

WAITED_US: Final = 10 * US_PER_SECOND
"""A smaller lead is waited for: the clocks of two API servers differ by at most that."""


def restore(fleet: "Fleet", saved: Saved) -> None:
    """Continue from the state that an earlier process saved."""
    for tier in fleet.rules.known_tiers:
        fleet.limiter.pin("tier", tier)
    for total in (Total.CAPACITY, Total.CAPACITY_COST, Total.PHYSICAL, Total.PHYSICAL_COST):
        fleet.totals.close(total, at_us=saved.at_us)
    for part in fleet.parts:
        part.restore(saved.documents.get(part.name, ()), at_us=saved.at_us)
    fleet.nodes.restore(saved.nodes, since_us=saved.at_us)
    _restore_pods(fleet, saved)
    fleet.waiting.pods_restored(at_us=saved.at_us)
    fleet.uncreated.pods_restored(fleet.pods.records.values(), at_us=saved.at_us)
    fleet.nodes.invalidate_all(since_us=saved.at_us)
    fleet.nodes.catch_up(at_us=saved.at_us)
    fleet.pods.reprice(at_us=saved.at_us, since_us=saved.at_us)
    fleet.usage.restore(saved, has_agent=fleet.agents.is_on)
    fleet.jobs.restore_departed(saved.departed)
    if saved.is_moved:
        fleet.pods.handover.touch_all(fleet.pods.records.values())
        for each in (fleet.totals.touch_all, fleet.nodes.touch_all, *(part.touch_all for part in fleet.parts)):
            each()
        fleet.usage.touch_all()


def _restore_pods(fleet: "Fleet", saved: Saved) -> None:
    """If pods may be classified differently now, clear the rules digest of the namespace checkpoint."""
    alike = fleet.resume_of(Kind.NAMESPACES) is not None and not saved.is_moved
    fleet.pods.restore(saved.pods, by_same_rules=alike)
    if not alike and (checkpoint := fleet.coverage.resumes.get(Kind.NAMESPACES)):
        fleet.coverage.store_checkpoint(Kind.NAMESPACES, replace(checkpoint, rules=""))


def at_present(saved: Saved, *, now_us: int) -> Saved:
    """`saved`, unless it was evaluated in the future: then without anything later than `now_us`.

    Published values stay as the floor of each series, so that the difference is exported as overcount. Observations
    with future times were made by now, so parts accept them in `restore`. What would start in the future starts now.
    """
    now_us = max(now_us, saved.accounting_start_us)
    if max(saved.evaluated_us, saved.at_us) <= now_us + WAITED_US:
        return saved
    return replace(
        saved,
        evaluated_us=now_us,
        at_us=now_us,
        series={key: _series(each, saved.evaluated_us, now_us) for key, each in saved.series.items()},
        pods=tuple(_pod(each, now_us) for each in saved.pods),
        nodes=tuple(_node(each, now_us) for each in saved.nodes),
        known_values={value: _known_value(each, now_us) for value, each in saved.known_values.items()},
        departed=tuple(_pod(each, now_us) for each in saved.departed),
        is_moved=True,
    )


def _series(series: Series, evaluated_us: int, now_us: int) -> Series:
    """With the values published at `evaluated_us` as floors; series that were new then are new again."""
    shown_us, floor = series.shown_us, series.floor
    if is_shown(series, evaluated_us) and series.floor_us != evaluated_us:
        floor = max(floor, series.at(evaluated_us))
    if shown_us is not None:
        shown_us = min(shown_us, now_us + max(0, shown_us - evaluated_us))
    return replace(series, created_us=min(series.created_us, now_us), floor=floor, floor_us=now_us, shown_us=shown_us)


def _known_value(known_values: KnownValue, now_us: int) -> KnownValue:
    return KnownValue(grew_us=min(known_values.grew_us, now_us), evicted_us=_by(now_us, known_values.evicted_us))


def _pod(pod: PodRecord, now_us: int) -> PodRecord:
    gap = pod.gap
    return replace(
        pod,
        created_us=min(pod.created_us, now_us),
        scheduled_us=_by(now_us, pod.scheduled_us),
        started_us=_by(now_us, pod.started_us),
        gang_until_us=pod.gang_until_us if pod.gang_until_us == INCOMPLETE else _by(now_us, pod.gang_until_us),
        deletion_us=_by(now_us, pod.deletion_us),
        preempted_us=_by(now_us, pod.preempted_us),
        disruption=replace(marked, at_us=min(marked.at_us, now_us)) if (marked := pod.disruption) else None,
        ending=_ending(pod.ending, now_us),
        end_us=_by(now_us, pod.end_us),
        gap=Gap(from_us=min(gap.from_us, now_us), to_us=min(gap.to_us, now_us)) if gap else None,
        left_us=_by(now_us, pod.left_us),
        remembered_us=_by(now_us, pod.remembered_us),
        terms=_terms(pod.terms, now_us),
    )


def _ending(ending: Ending | None, now_us: int) -> Ending | None:
    """A finish time is by the node's clock, which may be ahead; it is corrected when the pod is read."""
    if ending is None:
        return None
    from_us = ending.from_us if ending.by is End.FINISHED else min(ending.from_us, now_us)
    return replace(ending, from_us=from_us, to_us=min(ending.to_us, now_us), held_us=min(ending.held_us, now_us))


def _node(node: NodeRecord, now_us: int) -> NodeRecord:
    begun = [(min(from_us, now_us), facts) for from_us, facts in node.facts]
    return replace(
        node,
        created_us=min(node.created_us, now_us),
        gone_us=_by(now_us, node.gone_us),
        gone_by_us=_by(now_us, node.gone_by_us),
        unready=tuple((min(from_us, now_us), _by(now_us, to_us)) for from_us, to_us in node.unready),
        facts=tuple(dict(begun).items()),
        lost=tuple(replace(each, since_us=min(each.since_us, now_us)) for each in node.lost),
        looked_at=tuple((key, min(since_us, now_us)) for key, since_us in node.looked_at),
    )


def _by(now_us: int, at_us: int | None) -> int | None:
    return None if at_us is None else min(at_us, now_us)


def _terms(history: Sequence[Terms], now_us: int) -> tuple[Terms, ...]:
    """The terms, with later starts moved to `now_us`, where the last ones apply."""
    begun = {min(each.from_us, now_us): each for each in history}
    return tuple(replace(each, from_us=from_us) for from_us, each in begun.items())

"""Restores the fleet from what an earlier process saved."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from gputally.accounting.changes.changes import Saved
from gputally.accounting.totals.capacity_sums import by_state, offered
from gputally.accounting.totals.total import Total
from gputally.model.kube.meta import Kind

if TYPE_CHECKING:
    from gputally.accounting.fleet.fleet import Fleet


def restore(fleet: "Fleet", saved: Saved) -> None:
    """Continue from the state that an earlier process saved."""
    for tier in fleet.rules.known_tiers:
        fleet.limiter.pin("tier", tier)
    for total in (Total.CAPACITY, Total.CAPACITY_COST, Total.PHYSICAL, Total.PHYSICAL_COST):
        fleet.totals.close(total, at_us=saved.at_us)
    if (Total.PHYSICAL_COST, ()) not in fleet.totals.series:  # an earlier version did not keep it
        cost = by_state(fleet.totals, Total.CAPACITY_COST, at_us=saved.at_us)
        fleet.totals.count(Total.PHYSICAL_COST, (), offered(cost), at_us=saved.at_us)
    for part in fleet.parts:
        part.restore(saved.documents.get(part.name, ()), at_us=saved.at_us)
    fleet.nodes.restore(saved.nodes, since_us=saved.at_us)
    _restore_pods(fleet, saved)
    segments = (each for record in fleet.pods.records.values() for each in record.segments)
    fleet.totals.begin_purchases(segments, at_us=saved.at_us)
    fleet.waiting.pods_restored(at_us=saved.at_us)
    fleet.uncreated.pods_restored(fleet.pods.records.values(), at_us=saved.at_us)
    fleet.nodes.outdate_all(since_us=saved.at_us)
    fleet.nodes.catch_up(at_us=saved.at_us)
    fleet.pods.reprice(at_us=saved.at_us, since_us=saved.at_us)
    fleet.usage.restore(saved, has_agent=fleet.agents.is_on)
    fleet.jobs.restore_departed(saved.departed)
    _reset_spoiled(fleet, at_us=saved.at_us)
    if saved.is_moved:
        fleet.pods.handover.touch_all(fleet.pods.records.values())
        for each in (fleet.totals.touch_all, fleet.nodes.touch_all, *(part.touch_all for part in fleet.parts)):
            each()
        fleet.usage.touch_all()


def _reset_spoiled(fleet: "Fleet", *, at_us: int) -> None:
    """Reset the counters of waits that are so large that a further wait no longer changes their float value."""
    fleet.spoiled = tuple(fleet.totals.spoiled(at_us))
    if fleet.spoiled:
        fleet.waiting.book.restart(at_us=at_us)
        fleet.uncreated.waits.post()
    for total, labels in fleet.spoiled:
        fleet.totals.reset(total, labels, at_us=at_us)


def _restore_pods(fleet: "Fleet", saved: Saved) -> None:
    """If pods may be classified differently now, clear the rules digest of the namespace checkpoint."""
    alike = fleet.resume_of(Kind.NAMESPACES) is not None and not saved.is_moved
    fleet.pods.restore(saved.pods, by_same_rules=alike)
    if not alike and (checkpoint := fleet.coverage.resumes.get(Kind.NAMESPACES)):
        fleet.coverage.store_checkpoint(Kind.NAMESPACES, replace(checkpoint, rules=""))

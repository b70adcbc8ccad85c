"""Sums of the capacity counters by state, to compare them with what the nodes offered."""

from gputally.accounting.totals.total import Total
from gputally.accounting.totals.totals import Totals
from gputally.model.node_record import CapacityState

ByState = dict[str, int]


def by_state(totals: Totals, total: Total, *, at_us: int) -> ByState:
    """The sums of a family of capacity at that time by state, over all other labels."""
    found: ByState = {}
    for labels, series in totals.truth(total):
        found[labels[2]] = found.get(labels[2], 0) + series.at(at_us)
    return found


def offered(sums: ByState) -> int:
    """What the nodes offered: all states but the allocations beyond it."""
    return sum(sums.values()) - 2 * sums.get(CapacityState.OVERCOMMITTED, 0)

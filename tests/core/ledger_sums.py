"""The sums of the rows of a ledger, by their definitions: GPU-time and cost as lines a + b·t."""

from collections import Counter
from collections.abc import Iterable

from gputally.accounting.totals.total import Lines, Total
from gputally.model.lost_work import LostWork
from gputally.model.price import Price
from tests.core.memory import Memory

_Span = tuple[int, int | None, int, Price | None]
"""Start and end (µs), µGPU and price."""


def sums_in(memory: Memory) -> Lines:
    """The sums of all waits and losses."""
    waits = ((row.wait.from_us, row.wait.to_us, row.wait.quantity, row.wait.price) for row in memory.waits.values())
    uncreated = ((each.from_us, each.to_us, each.whole, each.price) for each in memory.uncreated_waits.values())
    losses = [each for each in memory.history["lost_work"].values() if isinstance(each, LostWork)]
    lost_cost = sum(cost for each in losses for _, cost in each.costs)
    return {
        **_lines(waits, Total.PENDING, Total.PENDING_COST),
        **_lines(uncreated, Total.UNCREATED, Total.UNCREATED_COST),
        Total.DISRUPTION_LOST: (sum(each.gpu_time for each in losses), 0),
        Total.DISRUPTION_LOST_COST: (lost_cost, 0),
    }


def _lines(spans: Iterable[_Span], time: Total, cost: Total) -> Lines:
    sums = Counter[str]()
    for from_us, to_us, quantity, price in spans:
        a = -quantity * from_us if to_us is None else quantity * (to_us - from_us)
        b = quantity if to_us is None else 0
        sums.update({"a": a, "b": b})
        if price:
            sums.update({"cost a": a * price.rate, "cost b": b * price.rate})
    return {time: (sums["a"], sums["b"]), cost: (sums["cost a"], sums["cost b"])}

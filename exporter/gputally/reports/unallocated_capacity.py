"""The cost of capacity that nobody held, as rows of its own or shared among those who held the rest."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from gputally.reports.bill import Bill, Line, bill_of
from gputally.reports.cells import Cell, LineJobs, LostCell, UnobservedCell, UsageCell
from gputally.reports.choices import EVEN, ROWS, TIME_DIMENSIONS
from gputally.reports.query import ReportQuery
from gputally.reports.rounding import apportioned

OF_CAPACITY: Final = ("gpu_model", "pool", "purchase", *TIME_DIMENSIONS)
"""The columns that also capacity has which nobody held."""

_Group = tuple[tuple[str, ...], str]
"""The values of these columns, and the currency."""


def bill_with_unallocated(
    parts: tuple[Sequence[Cell], Sequence[LineJobs], Iterable[UsageCell]],
    free: Sequence[Cell],
    query: ReportQuery,
    *,
    sharing: str,
    lost: Iterable[LostCell] = (),
    unobserved: Iterable[UnobservedCell] | None = None,
) -> Bill:
    """The bill of allocated cells, their jobs and usage, with the `free` capacity by one of `SHARINGS`.

    What was `lost` is a part of the allocations; what is `unobserved` of them is None if it is not known.

    It is shared among the lines of the same period, GPU model, pool and purchase option, where the query divides by
    these. Capacity that is unpriced, or has no such line with a cost, keeps rows of its own.
    """
    cells, jobs, usage = parts[0], parts[1], list(parts[2])
    if sharing == ROWS:
        return bill_of([*cells, *free], jobs, usage, lost=lost, unobserved=unobserved)
    places = [place for place, column in enumerate(query.columns) if column in OF_CAPACITY]
    lines = _with_cost(bill_of(cells), places)
    costs, rest = Counter[_Group](), list[Cell]()
    for cell in free:
        group = _values(cell.labels, places), cell.currency
        if cell.price and group in lines:
            costs[group] += cell.cost
        else:
            rest.append(cell)
    bill = bill_of([*cells, *rest], jobs, usage, lost=lost, unobserved=unobserved)
    for group, cost in costs.items():
        _share(bill, {line.labels: 1 if sharing == EVEN else line.cost for line in lines[group]}, group[1], cost)
    return bill


def _with_cost(bill: Bill, places: Sequence[int]) -> Mapping[_Group, list[Line]]:
    found: defaultdict[_Group, list[Line]] = defaultdict(list)
    for line in bill.lines:
        if line.cost:
            found[_values(line.labels, places), line.currency].append(line)
    return dict(found)


def _values(labels: tuple[str, ...], places: Sequence[int]) -> tuple[str, ...]:
    return tuple(labels[place] for place in places)


def _share(bill: Bill, weights: Mapping[tuple[str, ...], int], currency: str, cost: int) -> None:
    """Divide the cost among the lines with these labels, in proportion to their weights."""
    parts = apportioned([Fraction(cost * each, sum(weights.values())) for each in weights.values()], total=cost)
    shares = dict(zip(weights, parts, strict=True))
    for line in bill.lines:
        if line.currency == currency and line.labels in shares:
            line.unallocated_cost += shares[line.labels]
    for total in bill.totals:
        total.unallocated_cost += cost if total.currency == currency else 0

"""A bill: allocated GPU-time and its cost by line, exact, with the cost of capacity that nobody held."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from gputally.ledger.records import JOB, ReachedProgress, Window
from gputally.model.allocation import State
from gputally.reports.cells import Cell, LineJobs, LostCell, UnobservedCell, UsageCell
from gputally.reports.choices import EVEN, OF_CAPACITY, ROWS
from gputally.reports.query import ReportQuery
from gputally.reports.rounding import Column, apportioned

TIMES: Final = (
    "gpu_time",
    "starting",
    "gang_wait",
    "terminating",
    "unpriced",
    "unobserved",
    "measured",
    "used",
    "idle",
    "lost",
)
"""The fields of a line that are GPU-time (µs·µGPU)."""
COSTS: Final = ("cost", "idle_cost", "lost_cost", "unallocated_cost")
"""The fields of a line that are money, see `COST_UNIT`."""
_SUMMED: Final = (*(each for each in TIMES if each != "unobserved"), *COSTS, "energy", "bound", "wait_us")
_STATES: Final[Mapping[str, str]] = {
    State.STARTING: "starting",
    State.GANG_WAIT: "gang_wait",
    State.TERMINATING: "terminating",
}
"""The fields of a line that are parts of its GPU-time, by the state of a cell."""
TEAM_BY: Final = ("tenant", "job")
"""The dimensions by which the cells of a team bill are read: the tenant is the first column."""
Part = TypeVar("Part", Cell, LineJobs, LostCell, UsageCell, UnobservedCell)
_Group = tuple[tuple[str, ...], str]
"""The values of these columns, and the currency."""


class LineProgress(Struct, frozen=True, kw_only=True, gc=False):
    """The progress of the job of a line, in millionths of `unit`; `is_cost_whole` if its cost so far is the line's."""

    micro: int
    unit: str
    is_cost_whole: bool


class Line(Struct, kw_only=True, gc=False):
    """The sums of all cells with the same labels and currency.

    `starting`, `gang_wait` and `terminating` are parts of `gpu_time`, and so is `unpriced`, which costs nothing. Agents
    measured `measured`, which is `used` plus `idle`; use above the share of a container does not count. `energy` is in
    mJ.
    `unobserved` is no part of `gpu_time`: allocations may have had it in the gaps in which they ended, at most, and it
    costs nothing. None if it is not known. `lost` is the part of `gpu_time` that preemptions destroyed, and `lost_cost`
    the part of `cost` for it; with `is_lost_upper_bound`, both are upper bounds.
    `bound` pods were bound in the period, after `wait_us` since their creation, together.
    `unallocated_cost` is the share in the cost of capacity that nobody held, in addition to `cost`. `progress` is that
    of its job, if the line has one.
    """

    labels: tuple[str, ...]
    currency: str
    gpu_time: int = 0
    starting: int = 0
    gang_wait: int = 0
    terminating: int = 0
    unpriced: int = 0
    unobserved: int | None = None
    measured: int = 0
    used: int = 0
    idle: int = 0
    lost: int = 0
    energy: int = 0
    cost: int = 0
    idle_cost: int = 0
    lost_cost: int = 0
    is_lost_upper_bound: bool = False
    unallocated_cost: int = 0
    jobs: int = 0
    bound: int = 0
    wait_us: int = 0
    progress: LineProgress | None = None


class Bill(Struct, frozen=True):
    """Lines, the highest cost first, and a total for each currency; without prices, one total without currency."""

    lines: tuple[Line, ...]
    totals: tuple[Line, ...]


def bill_of(
    cells: Iterable[Cell],
    jobs: Iterable[LineJobs] = (),
    usage: Iterable[UsageCell] = (),
    *,
    lost: Iterable[LostCell] = (),
    unobserved: Iterable[UnobservedCell] | None = None,
    unpriced: str | None = None,
) -> Bill:
    """Adds up the cells, and counts the different jobs. What is `unobserved` is None if it is not known.

    Unpriced time belongs to the line of the currency `unpriced`; without it, to that of the only currency, and with
    several currencies, it has a line of its own.
    """
    found, measured = list(cells), list(usage)
    unpriced = currency_of_unpriced(found) if unpriced is None else unpriced
    sums = _Sums(unpriced, unobserved=None if unobserved is None else 0)
    for cell in found:
        sums.add(cell)
    for some in jobs:
        sums.add_jobs(some)
    for each in measured:
        sums.add_usage(each)
    for loss in lost:
        sums.add_lost(loss)
    for gap in unobserved or ():
        sums.add_unobserved(gap)
    return sums.bill()


def currency_of_unpriced(cells: Iterable[Cell]) -> str:
    """The only currency of all cells; empty if there are several or none."""
    currencies = {price.currency for price in {cell.price for cell in cells} if price}
    return currencies.pop() if len(currencies) == 1 else ""


class _Sums:
    """Lines that grow from `unobserved` time and nothing else; `unpriced` is the currency of lines without a price."""

    def __init__(self, unpriced: str, *, unobserved: int | None) -> None:
        self._unpriced = unpriced
        self._unobserved = unobserved
        self._lines = defaultdict[str, dict[tuple[str, ...], Line]](dict)
        """The lines of each currency by their labels."""
        self._jobs = defaultdict[str, dict[tuple[str, ...], set[int]]](dict)
        """The different jobs of each line."""

    def add(self, cell: Cell) -> None:
        """Add allocated time to its line."""
        line, gpu_time = self._line(cell), cell.gpu_time
        line.gpu_time += gpu_time
        if part := _STATES.get(cell.state):
            setattr(line, part, getattr(line, part) + gpu_time)
        if cell.price is None:
            line.unpriced += gpu_time
        else:
            line.cost += cell.price.cost(gpu_time)

    def add_jobs(self, found: LineJobs) -> None:
        """Add jobs to their line."""
        line = self._line(found)
        line.bound += found.bound
        line.wait_us += found.wait_us
        sets = self._jobs[line.currency]
        known = sets.get(found.labels)
        sets[found.labels] = found.jobs if known is None else known | found.jobs
        line.jobs = len(sets[found.labels])

    def add_usage(self, cell: UsageCell) -> None:
        """Add measured usage to its line."""
        line = self._line(cell)
        line.measured += cell.usage.measured
        line.used += cell.usage.measured - cell.usage.idle
        line.idle += cell.usage.idle
        line.energy += cell.usage.energy
        line.idle_cost += cell.idle_cost

    def add_lost(self, cell: LostCell) -> None:
        """Add time that preemptions destroyed to its line."""
        line = self._line(cell)
        line.lost += cell.gpu_time
        line.lost_cost += cell.cost
        line.is_lost_upper_bound |= cell.is_upper_bound and cell.gpu_time > 0

    def add_unobserved(self, cell: UnobservedCell) -> None:
        """Add unobserved time to its line."""
        line = self._line(cell)
        line.unobserved = (line.unobserved or 0) + cell.gpu_time

    def _line(self, part: Cell | LineJobs | LostCell | UsageCell | UnobservedCell) -> Line:
        currency = part.price.currency if part.price else self._unpriced
        lines = self._lines[currency]
        line = lines.get(part.labels)
        if line is None:
            line = lines[part.labels] = Line(labels=part.labels, currency=currency, unobserved=self._unobserved)
        return line

    def bill(self) -> Bill:
        """The lines, and the sum of all lines of each currency."""
        lines, totals = list[Line](), list[Line]()
        for currency, found in sorted(self._lines.items()):
            lines += sorted(found.values(), key=lambda line: (-line.cost, -line.gpu_time, line.labels))
            total = Line(labels=(), currency=currency, unobserved=self._unobserved)
            add_lines(total, [*found.values()])
            total.jobs = len(set[int]().union(*self._jobs[currency].values()))
            totals.append(total)
        return Bill(tuple(lines), tuple(totals))


def add_lines(total: Line, lines: Sequence[Line]) -> None:
    """Add all amounts of lines; the sum is what is known of any."""
    for field in _SUMMED:
        setattr(total, field, getattr(total, field) + sum(map(attrgetter(field), lines)))
    if known := [line.unobserved for line in lines if line.unobserved is not None]:
        total.unobserved = (total.unobserved or 0) + sum(known)
    total.is_lost_upper_bound |= any(line.is_lost_upper_bound for line in lines)


class TeamBill(Struct, frozen=True, kw_only=True):
    """The `teams` by tenant, and for each of them, the highest cost first, its `jobs` without the tenant."""

    teams: Bill
    jobs: tuple[tuple[str, Bill], ...]


def team_bill_of(
    cells: Iterable[Cell],
    jobs: Iterable[LineJobs],
    usage: Iterable[UsageCell],
    *,
    lost: Iterable[LostCell] = (),
    unobserved: Sequence[UnobservedCell] | None = None,
) -> TeamBill:
    """Adds up cells by `TEAM_BY`; what is `unobserved` is None if it is not known."""
    every, sets, measured, losses = list(cells), list(jobs), list(usage), list(lost)
    gaps = None if unobserved is None else _by_tenant(unobserved)
    teams = bill_of(_by_tenant(every), _by_tenant(sets), _by_tenant(measured), lost=_by_tenant(losses), unobserved=gaps)
    of_cells, of_sets, of_usage = _of_tenants(every), _of_tenants(sets), _of_tenants(measured)
    of_losses = _of_tenants(losses)
    of_gaps, unpriced = _of_tenants(unobserved or ()), currency_of_unpriced(every)
    bills = (
        (
            each,
            bill_of(
                of_cells[each],
                of_sets[each],
                of_usage[each],
                lost=of_losses[each],
                unobserved=None if unobserved is None else of_gaps[each],
                unpriced=unpriced,
            ),
        )
        for each in dict.fromkeys(line.labels[0] for line in teams.lines)
    )
    return TeamBill(teams=teams, jobs=tuple(bills))


def _by_tenant(parts: Sequence[Part]) -> list[Part]:
    return [replace(part, labels=part.labels[:1]) for part in parts]


def _of_tenants(parts: Sequence[Part]) -> Mapping[str, list[Part]]:
    """The parts of each tenant, without it."""
    found = defaultdict[str, list[Part]](list)
    for part in parts:
        found[part.labels[0]].append(replace(part, labels=part.labels[1:]))
    return found


def add_progress(bill: Bill, query: ReportQuery, read: Callable[[Window], Iterable[ReachedProgress]]) -> None:
    """Add the progress to the lines of jobs; `read` is called for reports by job alone. Raises: LedgerError.

    The cost of a line is all that its job has cost if the job began in the window, and if no other line, no filter and
    no missing price takes a part of it.
    """
    columns = query.columns
    if not set(JOB) <= set(columns) or query.window.start_us >= query.window.end_us:
        return
    places = [columns.index(column) for column in JOB]
    jobs = [tuple(line.labels[place] for place in places) for line in bill.lines]
    lines_of = Counter(jobs)
    is_unfiltered = all(limit.column in JOB for limit in query.filters)
    found = dict[tuple[str, ...], ReachedProgress]()
    for each in read(query.window):
        found[each.namespace, each.job_kind, each.job] = each
    for job, line in zip(jobs, bill.lines, strict=True):
        if reached := found.get(job):
            is_alone = lines_of[job] == 1 and is_unfiltered and bool(line.currency) and not line.unpriced
            line.progress = LineProgress(
                micro=reached.micro, unit=reached.unit, is_cost_whole=reached.is_whole and is_alone
            )


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
    parts = apportioned(Column([cost * each for each in weights.values()], sum(weights.values())), total=cost)
    shares = dict(zip(weights, parts, strict=True))
    for line in bill.lines:
        if line.currency == currency and line.labels in shares:
            line.unallocated_cost += shares[line.labels]
    for total in bill.totals:
        total.unallocated_cost += cost if total.currency == currency else 0

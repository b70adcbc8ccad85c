"""Bills as people read them: GPU-hours and money with decimals that add up to their totals."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from operator import attrgetter, sub
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from gputally.model.units import COST_UNIT, GPU_HOUR, MICRO, US_PER_SECOND
from gputally.reports.bill import COSTS, TIMES, Bill, Line, add_lines
from gputally.reports.cost_change import CAUSES, CostChange
from gputally.reports.rounding import (
    PERCENT_PLACES,
    Column,
    apportioned,
    apportioned_columns,
    column_in,
    column_of,
    decimal_of,
    quotient,
    rounded,
    scaled,
)
from gputally.reports.time_dimensions import in_order_of_time

_MJ_PER_KWH: Final = 3_600_000_000
OTHERS: Final = "(others)"
"""Every label of the line that adds up those beyond a limit."""
_UNITS: Final = {**dict.fromkeys(TIMES, GPU_HOUR), **dict.fromkeys(COSTS, COST_UNIT), "energy": _MJ_PER_KWH}
"""The columns of amounts, in GPU-hours, in units of the currency and in kWh."""
_NAMES: Final = {"gpu_time": "gpu_hours", "energy": "energy_kwh"}
"""What rows call the fields of lines otherwise."""


class _Part(NamedTuple):
    """A column is a part of the `whole`; those `beside` it are other parts of it. With `is_rest` they are all of it."""

    whole: str
    beside: tuple[str, ...] = ()
    is_rest: bool = False


_PART_OF: Final = {
    "starting": _Part("gpu_time", ("gang_wait", "terminating")),
    "gang_wait": _Part("gpu_time", ("starting", "terminating")),
    "terminating": _Part("gpu_time", ("starting", "gang_wait")),
    "unpriced": _Part("gpu_time"),
    "measured": _Part("gpu_time"),
    "used": _Part("measured", ("idle",)),
    "idle": _Part("measured", ("used",), is_rest=True),
    "lost": _Part("gpu_time"),
    "idle_cost": _Part("cost"),
    "lost_cost": _Part("cost"),
}
"""Columns that are parts of others; the wholes come before them in `TIMES` and `COSTS`."""


class BillRow(Struct, frozen=True, gc=False):
    """One line, rounded.

    `share` is its part of the total cost in percent, or of GPU-hours where nothing is priced. Measured GPU-hours
    are used and idle ones; `lost` ones were destroyed by preemptions, and `lost_cost` is their part of `cost`, both
    at most where `is_lost_upper_bound`; `unobserved` ones are not in `gpu_hours`, see `Line`. `utilisation` is used
    over measured in percent, None if nothing was measured. `pods` were bound in the period, on average
    `mean_wait_seconds` after their creation; None if there were none.
    `progress` is that of the row's job, None if it states none; so is `cost_per_unit` if `cost` may not be all of it.
    """

    labels: tuple[str, ...]
    currency: str
    gpu_hours: Decimal
    starting: Decimal
    gang_wait: Decimal
    terminating: Decimal
    unpriced: Decimal
    unobserved: Decimal | None
    measured: Decimal
    used: Decimal
    idle: Decimal
    lost: Decimal
    utilisation: Decimal | None
    energy_kwh: Decimal
    cost: Decimal
    idle_cost: Decimal
    lost_cost: Decimal
    unallocated_cost: Decimal
    share: Decimal
    jobs: int
    pods: int
    mean_wait_seconds: Decimal | None
    progress: Decimal | None
    progress_unit: str | None
    cost_per_unit: Decimal | None
    is_lost_upper_bound: bool = False


class BillRows(Struct, frozen=True):
    """Rows that add up to the total of one currency, but for its jobs: one job may be in several rows."""

    rows: tuple[BillRow, ...]
    total: BillRow


class RowChoice(NamedTuple):
    """Rows with `places` decimals, only the `top` ones, ordered by the columns `time_columns` if there are any."""

    places: int
    top: int | None = None
    time_columns: tuple[int, ...] = ()


class _Labelled(Protocol):
    labels: tuple[str, ...]


L = TypeVar("L", bound=_Labelled)


def lost_note(start: str) -> str:
    """Since when lost work counts, and what its sign in tables means, for people."""
    return f"Lost work counts from the accounting start, {start}; < marks upper bounds: a pod stated no checkpoint."


def rows_of(bill: Bill, choice: RowChoice, *, shown: Mapping[str, BillRow] | None = None) -> list[BillRows]:
    """The rows of each currency; lines beyond the top ones are added up in one row.

    If the bill is a part of another one, `shown` are the rows for it there by currency, to which these add up.
    """
    return [
        _rows([line for line in bill.lines if line.currency == total.currency], total, choice, given=shown)
        for total in bill.totals
    ]


def _rows(lines: Sequence[Line], total: Line, choice: RowChoice, *, given: Mapping[str, BillRow] | None) -> BillRows:
    places, shown = choice.places, shown_lines(lines, choice, _others)
    known = [field for field in _UNITS if getattr(total, field) is not None]
    totals = _totals(_exact([total], total, known, places))
    if given:
        totals |= _scaled_back(given[total.currency], known, places)
    exact = _exact(shown, total, known, places)
    columns = apportioned_columns(
        exact, totals, lambda field, before: _limits(field, before, exact) if field in _PART_OF else None
    )
    [row_of_total] = _from_columns([total], {field: [value] for field, value in totals.items()}, places)
    return BillRows(tuple(_from_columns(shown, columns, places)), row_of_total)


def _exact(lines: Sequence[Line], total: Line, fields: Sequence[str], places: int) -> dict[str, Column]:
    """The columns of these fields and of the shares in the total, in units of their last decimals."""
    read = zip(*map(attrgetter(*fields), lines), strict=True)  # each line once
    columns = dict(zip(fields, read, strict=True))
    found = {field: column_in(values, _UNITS[field], places=places) for field, values in columns.items()}
    base = "cost" if total.cost else "gpu_time"
    whole = getattr(total, base)
    percent = 100 * 10**PERCENT_PLACES * (1 if whole > 0 else -1)
    shares = [percent * value for value in columns[base]] if whole else [0] * len(lines)
    return found | {"share": Column(shares, abs(whole) or 1)}


def _totals(exact: Mapping[str, Column]) -> dict[str, int]:
    """Each total as an integer; a part is no more than what is left of its whole, and the last part is all of that."""
    found = dict[str, list[int]]()
    for field, ([number], unit) in exact.items():
        found[field] = [quotient(number, unit)]
        if part := _PART_OF.get(field):
            limits = _limits(field, found, exact)
            found[field] = limits if part.is_rest else [min(*found[field], *limits)]
    return {field: value for field, [value] in found.items()}


def _limits(field: str, before: Mapping[str, list[int]], exact: Mapping[str, Column]) -> list[int]:
    """What is left for a part in each row: its whole without the parts beside it, the later of them rounded down.

    A part that is more than its whole, as corrections may be, is only rounded.
    """
    part = _PART_OF[field]
    left = before[part.whole]
    for each in part.beside:
        left = [*map(sub, left, before[each] if each in before else exact[each].floors())]
    numbers, unit = exact[field]
    amounts = zip(left, numbers, exact[part.whole].numbers, strict=True)  # a part has the unit of its whole
    return [limit if value <= whole else max(limit, -(-value // unit)) for limit, value, whole in amounts]


def _scaled_back(row: BillRow, fields: Iterable[str], places: int) -> dict[str, int]:
    """The integers of a row that was shown."""
    return {each: int(getattr(row, _NAMES.get(each, each)).scaleb(places)) for each in fields}


def shown_lines(lines: Sequence[L], choice: RowChoice, others: Callable[[Sequence[L]], L]) -> list[L]:
    """The top lines; `others` adds up those beyond them in one."""
    first, rest = lines[: choice.top], lines[choice.top :] if choice.top is not None else ()
    if choice.time_columns:
        first = sorted(
            first, key=lambda line: [in_order_of_time(line.labels[column]) for column in choice.time_columns]
        )
    return [*first, *([others(rest)] if rest else ())]


def _others(lines: Sequence[Line]) -> Line:
    found = Line(labels=(OTHERS,) * len(lines[0].labels), currency=lines[0].currency)
    add_lines(found, lines)
    found.jobs = sum(line.jobs for line in lines)
    return found


def _from_columns(lines: Sequence[Line], columns: Mapping[str, Sequence[int]], places: int) -> Iterator[BillRow]:
    """A row for each line, with its amounts; `unobserved` is None if it is not among the columns."""
    amounts = {_NAMES.get(field, field): _decimals(field, column, places) for field, column in columns.items()}
    found = {"unobserved": repeat(None), **amounts, **_beside_amounts(lines, places)}
    return map(BillRow, *(found[field] for field in BillRow.__struct_fields__))


def _decimals(field: str, column: Sequence[int], places: int) -> list[Decimal]:
    """The column in its unit; in most reports, most columns are all 0."""
    last = scaled(1, PERCENT_PLACES if field == "share" else places)
    return [Decimal(value) * last for value in column] if any(column) else [0 * last] * len(column)


def _beside_amounts(lines: Sequence[Line], places: int) -> dict[str, list[Any]]:
    """What rows have besides amounts, by column."""
    reached = [line.progress for line in lines]
    return {
        "labels": [line.labels for line in lines],
        "currency": [line.currency for line in lines],
        "utilisation": [_tenths(100 * line.used, line.measured) if line.measured else None for line in lines],
        "jobs": [line.jobs for line in lines],
        "pods": [line.bound for line in lines],
        "mean_wait_seconds": [
            _tenths(line.wait_us, line.bound * US_PER_SECOND) if line.bound else None for line in lines
        ],
        "progress": [_decimal(each.micro) if each else None for each in reached],
        "progress_unit": [each.unit if each else None for each in reached],
        "cost_per_unit": [_cost_per_unit(line, places) if line.progress else None for line in lines],
        "is_lost_upper_bound": [line.is_lost_upper_bound for line in lines],
    }


def _tenths(whole: int, count: int) -> Decimal:
    """`whole` divided by `count`."""
    return scaled(quotient(whole * 10**PERCENT_PLACES, count), PERCENT_PLACES)


def _decimal(micro: int) -> Decimal:
    """Millionths, without the zeros at the end."""
    whole, rest = divmod(micro, MICRO)
    return Decimal(f"{whole}.{rest:06}".rstrip("0").rstrip("."))


def _cost_per_unit(line: Line, places: int) -> Decimal | None:
    reached = line.progress
    if reached is None or not reached.micro or not reached.is_cost_whole:
        return None
    return decimal_of(Fraction(line.cost * MICRO, COST_UNIT * reached.micro), places)


class ChangeRow(Struct, frozen=True, kw_only=True):
    """One change, rounded; the causes add up to `difference`, which is `after` minus `before`."""

    labels: tuple[str, ...]
    currency: str
    before: Decimal
    after: Decimal
    difference: Decimal
    new_jobs: Decimal
    ended_jobs: Decimal
    quantity: Decimal
    mix: Decimal
    price: Decimal


def change_rows(changes: Sequence[CostChange], *, places: int, top: int | None = None) -> list[ChangeRow]:
    """The rows of one currency, then their total, to which the rows add up; those beyond the `top` ones in one row."""
    sums = [sum((getattr(each, field) for each in changes), Fraction()) for field in ("before", "after")]
    totals = [rounded(_scaled(each, places)) for each in sums]
    columns = [
        apportioned(column_of(_scaled(getattr(each, field), places) for each in changes), total=total)
        for field, total in zip(("before", "after"), totals, strict=True)
    ]
    rows = [_change(each, columns[0][place], columns[1][place], places) for place, each in enumerate(changes)]
    rest = rows[top:] if top is not None else []
    others = [_sum(rest, (OTHERS,) * len(rest[0].labels))] if rest else []
    return [*rows[:top], *others, _sum(rows, ())]


def _scaled(cost: Fraction, places: int) -> Fraction:
    return cost * Fraction(10**places, COST_UNIT)


def _change(each: CostChange, before: int, after: int, places: int) -> ChangeRow:
    causes = apportioned(column_of(_scaled(getattr(each, cause), places) for cause in CAUSES), total=after - before)
    amounts = (Decimal(value).scaleb(-places) for value in (before, after, after - before, *causes))
    names = ("before", "after", "difference", *CAUSES)
    return ChangeRow(labels=each.labels, currency=each.currency, **dict(zip(names, amounts, strict=True)))


def _sum(rows: Sequence[ChangeRow], labels: tuple[str, ...]) -> ChangeRow:
    names = ("before", "after", "difference", *CAUSES)
    totals = {name: sum((getattr(row, name) for row in rows), Decimal()) for name in names}
    return ChangeRow(labels=labels, currency=rows[0].currency, **totals)

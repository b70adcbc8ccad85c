"""Waterfalls as people read them: names, bars, and decimals that add up from step to step and over the lines."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from typing import Final, NamedTuple

from msgspec import Struct

from gputally.model.units import COST_UNIT, GPU_HOUR
from gputally.reports.rounding import PERCENT_PLACES, apportioned, column_of, decimal_of, rounded
from gputally.reports.waterfall import (
    ALLOCATED,
    CAUSES,
    KEYS,
    NOT_LOST,
    SINCE_START,
    SUCCEEDED,
    Amount,
    Key,
    Waterfall,
    keys_after,
    sign_of,
)

_NAMES: Final = {
    (NOT_LOST, SINCE_START): "lost since start, at most",
    (SUCCEEDED, ""): "in jobs that succeeded",
    (SUCCEEDED, "running"): "still running",
    (SUCCEEDED, "unknown"): "unknown outcome",
}


class Bar(NamedTuple):
    """Where the bar of a row begins and how long it is, in percent of the first step."""

    begin: Decimal
    length: Decimal


def name_of(step: str, cause: str) -> str:
    """A step, or a difference that leads to it, for people."""
    return _NAMES.get((step, cause), (cause or step).replace("_", " "))


def bars(rows: Iterable[tuple[str, Decimal]]) -> Iterator[Bar]:
    """For each cause and share: a step begins at 0, a difference lies between what was before and what is after it."""
    at = Decimal()
    for cause, share in rows:
        after = at + share if cause else share
        yield Bar(min(at, after), abs(share)) if cause else Bar(Decimal(), share)
        at = after


class WaterfallRow(Struct, frozen=True, kw_only=True):
    """A step (without a `cause`), or the difference to the step before that has this cause; a loss is negative.

    `share` is in percent of the first step's cost, or of its GPU-hours where nothing is priced.
    """

    step: str
    cause: str
    gpu_hours: Decimal
    unpriced: Decimal
    cost: Decimal
    share: Decimal


class WaterfallRows(Struct, frozen=True, kw_only=True):
    """The rows of one waterfall; `labels` is None for the whole.

    `billed` is what the allocations cost by their own prices, `price_differences` how much more that is than at the
    prices of capacity. The last two are the cost of the first step by its GPU-hours, and by those that were used in
    jobs that succeeded; both without unpriced ones, None if there are none.
    """

    labels: tuple[str, ...] | None
    currency: str
    rows: tuple[WaterfallRow, ...]
    price_differences: Decimal
    billed: Decimal
    gpu_hour_price: Decimal | None
    useful_gpu_hour_price: Decimal | None


class _Measure(NamedTuple):
    """The rounded parts of one measure."""

    places: int
    parts: dict[Key, int]

    def value(self, step: str, cause: str) -> Decimal:
        """The amount of a difference, or without a cause, of all that reached the step."""
        found = -sign_of((step, cause)) * self.parts[step, cause] if cause else self.total(step)
        return Decimal(found).scaleb(-self.places)

    def total(self, step: str) -> int:
        """All that reached the step."""
        return sum(sign_of(key) * self.parts[key] for key in keys_after(step))


def waterfall_rows(found: Sequence[Waterfall], places: int) -> list[WaterfallRows]:
    """The rows of all waterfalls, amounts with `places` decimals.

    The parts of the whole are rounded so that they add up to its first step, and each of them is divided among the
    lines; every step is the sum of its parts. So the last digit of a row may differ from its own rounding.
    """
    rows = list[WaterfallRows]()
    for group in (list(each) for _, each in groupby(found, key=lambda each: each.currency)):
        whole, *lines = group
        columns = {field: _rounded(whole, lines, field, places) for field in Amount.__struct_fields__}
        more = [_amount(each.billed - each.level(ALLOCATED).cost, COST_UNIT, places) for each in lines]
        differences = rounded(_amount(whole.billed, COST_UNIT, places)) - columns["cost"][0].total(ALLOCATED)
        for place, difference in enumerate((differences, *apportioned(column_of(more), total=differences))):
            chosen = {field: column[place] for field, column in columns.items()}
            rows.append(_rows(group[place], chosen, Decimal(difference).scaleb(-places)))
    return rows


def _rounded(whole: Waterfall, lines: Sequence[Waterfall], field: str, places: int) -> list[_Measure]:
    """The parts of the whole and of each line."""
    unit = COST_UNIT if field == "cost" else GPU_HOUR
    parts = [{key: _amount(getattr(part, field), unit, places) for key, part in each.parts.items()} for each in lines]
    columns = [_whole({key: _amount(getattr(part, field), unit, places) for key, part in whole.parts.items()}, places)]
    columns += [_Measure(places, {}) for _ in lines]
    for key in KEYS:
        if any(each[key] for each in parts):
            shares = apportioned(column_of(each[key] for each in parts), total=columns[0].parts[key])
        else:
            shares = [0] * len(lines)
        for column, share in zip(columns[1:], shares, strict=True):
            column.parts[key] = share
    return columns


def _amount(value: int, unit: int, places: int) -> Fraction:
    return Fraction(value * 10**places, unit)


def _whole(parts: dict[Key, Fraction], places: int) -> _Measure:
    """Both the first step and the allocated one are rounded as such."""
    signed = {key: sign_of(key) * part for key, part in parts.items()}
    later = set(keys_after(ALLOCATED))
    allocated = rounded(sum((part for key, part in signed.items() if key in later), Fraction()))
    totals = {True: allocated, False: rounded(sum(signed.values(), Fraction())) - allocated}
    integers = dict[Key, int]()
    for is_later, total in totals.items():
        keys = [key for key in signed if (key in later) is is_later]
        for key, each in zip(keys, apportioned(column_of(signed[key] for key in keys), total=total), strict=True):
            integers[key] = sign_of(key) * each
    return _Measure(places, integers)


def _rows(each: Waterfall, columns: dict[str, _Measure], differences: Decimal) -> WaterfallRows:
    first, useful = each.level(each.first), each.level(SUCCEEDED)
    shares = _shares(each, first)
    rows = (
        WaterfallRow(
            step=step,
            cause=cause,
            gpu_hours=columns["gpu_time"].value(step, cause),
            unpriced=columns["unpriced"].value(step, cause),
            cost=columns["cost"].value(step, cause),
            share=shares.value(step, cause),
        )
        for step, cause in _places_of(each)
    )
    return WaterfallRows(
        labels=each.labels,
        currency=each.currency,
        rows=tuple(rows),
        price_differences=differences,
        billed=columns["cost"].value(ALLOCATED, "") + differences,
        gpu_hour_price=_price(first.cost, first, columns["cost"].places),
        useful_gpu_hour_price=_price(first.cost, useful, columns["cost"].places),
    )


def _places_of(each: Waterfall) -> Iterator[Key]:
    """Each step without a cause, after the differences that lead to it."""
    for step in each.steps:
        if step != each.first:
            yield from ((step, cause) for cause in CAUSES[step])
        yield step, ""


def _shares(each: Waterfall, first: Amount) -> _Measure:
    field = "cost" if first.cost else "gpu_time"
    whole, known = getattr(first, field), set(keys_after(each.first))
    percents = {
        key: Fraction(getattr(part, field) * 1000, whole) if key in known and whole else Fraction()
        for key, part in each.parts.items()
    }
    return _whole(percents, PERCENT_PLACES)


def _price(cost: int, hours: Amount, places: int) -> Decimal | None:
    priced = hours.gpu_time - hours.unpriced
    if not priced or not cost:
        return None
    return decimal_of(Fraction(cost * GPU_HOUR, COST_UNIT * priced), places)

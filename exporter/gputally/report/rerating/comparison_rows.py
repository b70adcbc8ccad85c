"""Rows of a comparison of prices, with decimals that add up to their totals."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from msgspec import Struct

from gputally.model.units import COST_UNIT, GPU_HOUR
from gputally.report.rerating.price_comparison import PriceComparison, RatedLine
from gputally.report.rounded_rows import OTHERS, RowChoice, shown_lines
from gputally.report.rounding import PERCENT_PLACES, apportioned, apportioned_within, decimal_of, rounded

_TIMES: Final = ("gpu_time", "unpriced_before", "unpriced_after", "estimated")
_PARTS_OF_TIME: Final = _TIMES[1:]
_COSTS: Final = ("before", "after", "newly_priced", "no_longer_priced")
"""The fields of a line that are money."""


class ComparisonRow(Struct, frozen=True, kw_only=True):
    """One line, rounded; `currency` is that of costs before, `currency_after` the other one.

    A cost is None if all of the line is unpriced. `difference` is that of GPU-hours with both prices, None without any
    or with different currencies; `after` = `before` + `difference` + `newly_priced` - `no_longer_priced`. `change` is
    the difference in percent of what these GPU-hours cost before.
    """

    labels: tuple[str, ...]
    currency: str
    currency_after: str
    gpu_hours: Decimal
    before: Decimal | None
    after: Decimal | None
    difference: Decimal | None
    change: Decimal | None
    newly_priced: Decimal
    no_longer_priced: Decimal
    unpriced_before: Decimal
    unpriced_after: Decimal
    estimated: Decimal


class ComparisonRows(Struct, frozen=True):
    """Rows that add up to the total of one currency before."""

    rows: tuple[ComparisonRow, ...]
    total: ComparisonRow


def comparison_rows(comparison: PriceComparison, choice: RowChoice) -> list[ComparisonRows]:
    """The rows of each currency; lines beyond the top ones are added up in one row."""
    return [
        _rows([line for line in comparison.lines if line.currency == total.currency], total, comparison, choice)
        for total in comparison.totals
    ]


def _rows(
    lines: Sequence[RatedLine], total: RatedLine, comparison: PriceComparison, choice: RowChoice
) -> ComparisonRows:
    shown, totals = shown_lines(lines, choice, _others), _totals(total, choice.places)
    columns = dict[str, list[int]]()
    for name, value in totals.items():
        parts = [_scaled(line, name, choice.places) for line in shown]
        if name in _PARTS_OF_TIME:
            columns[name] = apportioned_within(parts, total=value, limits=columns["gpu_time"])
        else:
            columns[name] = apportioned(parts, total=value)
    rows = (
        _row(line, {name: column[place] for name, column in columns.items()}, comparison.currency, choice.places)
        for place, line in enumerate(shown)
    )
    return ComparisonRows(tuple(rows), _row(total, totals, comparison.currency, choice.places))


def _totals(total: RatedLine, places: int) -> dict[str, int]:
    """The rounded sums of parts, so that costs are the sums of their parts, and equal those of a report."""
    exact = (*_TIMES, "before", "after", "compared_before", "compared_after")
    found = {name: rounded(_scaled(total, name, places)) for name in exact}
    found["no_longer_priced"] = found.pop("before") - found["compared_before"]
    found["newly_priced"] = found.pop("after") - found["compared_after"]
    return found


def _others(lines: Sequence[RatedLine]) -> RatedLine:
    found = RatedLine(labels=(OTHERS,) * len(lines[0].labels), currency=lines[0].currency)
    for line in lines:
        for name in ("compared", *_TIMES, *_COSTS):
            setattr(found, name, getattr(found, name) + getattr(line, name))
    return found


def _scaled(line: RatedLine, name: str, places: int) -> Fraction:
    return Fraction(getattr(line, name) * 10**places, GPU_HOUR if name in _TIMES else COST_UNIT)


def _row(line: RatedLine, values: dict[str, int], currency: str, places: int) -> ComparisonRow:
    amounts = {name: Decimal(value).scaleb(-places) for name, value in values.items()}
    is_comparable = line.compared > 0 and line.currency == currency
    before, after = amounts["compared_before"], amounts["compared_after"]
    return ComparisonRow(
        labels=line.labels,
        currency=line.currency,
        currency_after=currency,
        gpu_hours=amounts["gpu_time"],
        before=before + amounts["no_longer_priced"] if line.unpriced_before < line.gpu_time else None,
        after=after + amounts["newly_priced"] if line.unpriced_after < line.gpu_time else None,
        difference=after - before if is_comparable else None,
        change=_percent(line.difference, line.compared_before) if is_comparable else None,
        **{name: amounts[name] for name in ("newly_priced", "no_longer_priced", *_PARTS_OF_TIME)},
    )


def _percent(part: int, whole: int) -> Decimal | None:
    return decimal_of(Fraction(100 * part, whole), PERCENT_PLACES) if whole else None

"""What the lines of a period cost at two prices, exact and as people read it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from msgspec import Struct

from gputally.model.units import COST_UNIT, GPU_HOUR
from gputally.reports.bill_rows import OTHERS, RowChoice, shown_lines
from gputally.reports.rerating import RatedTime
from gputally.reports.rounding import PERCENT_PLACES, apportioned_columns, column_of, decimal_of, rounded

_TIMES: Final = ("gpu_time", "unpriced_before", "unpriced_after", "estimated")
_PARTS_OF_TIME: Final = _TIMES[1:]
_COSTS: Final = ("before", "after", "newly_priced", "no_longer_priced")
"""The fields of a line that are money."""


class RatedLine(Struct, kw_only=True):
    """All time with the same labels and currency before, or without a price before.

    Times are in µs·µGPU, costs see `COST_UNIT`. Unpriced time costs nothing; `compared` has both prices. `newly_priced`
    is the cost after of time that had no price before, and `no_longer_priced` the cost before of time that has none
    after. The price of `estimated` time is not certain: it may depend on facts that the ledger does not have.
    """

    labels: tuple[str, ...]
    currency: str
    gpu_time: int = 0
    unpriced_before: int = 0
    unpriced_after: int = 0
    estimated: int = 0
    compared: int = 0
    before: int = 0
    after: int = 0
    newly_priced: int = 0
    no_longer_priced: int = 0

    @property
    def compared_before(self) -> int:
        """The cost before of time that has both prices."""
        return self.before - self.no_longer_priced

    @property
    def compared_after(self) -> int:
        """The cost after of time that has both prices."""
        return self.after - self.newly_priced

    @property
    def difference(self) -> int:
        """The difference for time that has both prices. It means nothing if they are in different currencies."""
        return self.compared_after - self.compared_before

    def add(self, time: RatedTime) -> None:
        """Add some time."""
        before = time.before.cost(time.gpu_time) if time.before else 0
        after = time.after.cost(time.gpu_time) if time.after else 0
        self.gpu_time += time.gpu_time
        self.unpriced_before += time.gpu_time * (time.before is None)
        self.unpriced_after += time.gpu_time * (time.after is None)
        self.estimated += time.gpu_time * time.is_estimated
        self.compared += time.gpu_time * (time.before is not None and time.after is not None)
        self.before += before
        self.after += after
        self.newly_priced += after * (time.before is None)
        self.no_longer_priced += before * (time.after is None)


class PriceComparison(Struct, frozen=True, kw_only=True):
    """Lines, the largest difference first, and a total for each currency before; `currency` is that of costs after.

    Of the estimated time, `guessed` is on nodes that were never observed, `changed_days` is that of days of which only
    the sum is left and in which a price changed, and `unknown_keys` is what depends on node labels that the ledger may
    not have stored, by label key.
    """

    lines: tuple[RatedLine, ...]
    totals: tuple[RatedLine, ...]
    currency: str
    guessed: int
    changed_days: int
    unknown_keys: Mapping[str, int]


def compare_prices(times: Iterable[RatedTime], *, currency: str) -> PriceComparison:
    """Adds up rated time.

    Time that was unpriced before belongs to the only currency before, or else to `currency`, if nothing was priced.
    """
    found = list(times)
    currencies = sorted({each.before.currency for each in found if each.before}) or [currency]
    home = currencies[0] if len(currencies) == 1 else ""
    lines, totals = dict[tuple[tuple[str, ...], str], RatedLine](), dict[str, RatedLine]()
    unknown_keys = Counter[str]()
    for each in found:
        name = each.before.currency if each.before else home
        lines.setdefault((each.labels, name), RatedLine(labels=each.labels, currency=name)).add(each)
        totals.setdefault(name, RatedLine(labels=(), currency=name)).add(each)
        unknown_keys.update(dict.fromkeys(each.unknown_keys, each.gpu_time))
    return PriceComparison(
        lines=tuple(sorted(lines.values(), key=_order)),
        totals=tuple(totals[name] for name in sorted(totals)),
        currency=currency,
        guessed=sum(each.gpu_time for each in found if each.is_guessed),
        changed_days=sum(each.gpu_time for each in found if each.is_of_changed_day),
        unknown_keys=dict(sorted(unknown_keys.items())),
    )


def _order(line: RatedLine) -> tuple[str, int, int, int, tuple[str, ...]]:
    return line.currency, -abs(line.difference), -line.before, -line.gpu_time, line.labels


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
    parts = {name: column_of(_scaled(line, name, choice.places) for line in shown) for name in totals}
    columns = apportioned_columns(
        parts, totals, lambda name, before: before["gpu_time"] if name in _PARTS_OF_TIME else None
    )
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

"""What to report: the period, the dimensions and the filters, and which values of filters no record has."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from msgspec import Struct

from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import Window
from gputally.model.allocation import Outcome
from gputally.model.price import Purchase
from gputally.model.verdicts import Reason
from gputally.model.waits import WaitCause
from gputally.reports.choices import COLUMNS, TIME_DIMENSIONS, Filter
from gputally.reports.time_dimensions import Calendar, Periods, periods_of

_TENANT: Final = "tenant"
_FIXED: Final[Mapping[str, Collection[str]]] = {
    "outcome": tuple(Outcome),
    "job_outcome": tuple(Outcome),
    "purchase": tuple(Purchase),
    "cause": tuple(WaitCause),
    "reason": tuple(Reason),
}
"""Columns of which all values are known."""
_LITERAL: Final = re.compile(r"\[(.)\]")
"""A character that a literal glob escapes."""
_HIDDEN: Final = ("occupying_tenant", *TIME_DIMENSIONS)
"""Columns that are not looked up: others' tenants, of which a restricted reader must not learn, and times, which a
short period may not have."""


class ReportQuery(Struct, frozen=True, kw_only=True):
    """What to report: the period, the dimensions of its lines, and which allocations and times."""

    window: Window
    by: tuple[str, ...]
    filters: tuple[Filter, ...] = ()
    calendar: Calendar = Calendar()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that identify a line, each once."""
        return _columns_of(self.by)

    @property
    def times(self) -> tuple[str, ...]:
        """The dimensions of time among the lines' and the filters'."""
        named = (*self.by, *(each.column for each in self.filters))
        return tuple(dict.fromkeys(each for each in named if each in TIME_DIMENSIONS))

    @property
    def time_columns(self) -> tuple[int, ...]:
        """The places of those dimensions among the columns."""
        return tuple(place for place, column in enumerate(self.columns) if column in TIME_DIMENSIONS)

    @property
    def periods(self) -> Periods:
        """The periods of the window by its dimensions of time."""
        return periods_of(self.times, self.window, self.calendar)

    def includes(self, values: Mapping[str, str]) -> bool:
        """Whether all filters include these values of columns."""
        return not self.filters or all(each.includes(values[each.column]) for each in self.filters)


@lru_cache(maxsize=64)
def _columns_of(by: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that identify a line: looked up for each cell of a report."""
    return tuple(dict.fromkeys(column for dimension in by for column in COLUMNS[dimension]))


def unmatched(reader: LedgerReader, query: ReportQuery) -> list[str]:
    """The values of the query's filters that no record of any time has, such as `tenant visoin`.

    With filters of tenants, only the records of these count, so that a restricted reader learns nothing of others. The
    tenants that such a reader may see exist, whether they have records or not. Raises: LedgerError.
    """
    own = {each.column: each for each in reversed(query.filters) if not each.is_limit}
    return [f"{column} {glob}" for column, each in own.items() for glob in _missing(reader, query, each)]


def _missing(reader: LedgerReader, query: ReportQuery, own: Filter) -> Iterator[str]:
    tenants = [each for each in query.filters if each.column == _TENANT and each is not own]
    existing = _existing(own.column, tenants)
    for glob in own.globs:
        is_known = own.column in _HIDDEN or any(fnmatchcase(value, glob) for value in existing)
        if not is_known and own.column not in _FIXED:
            found = reader.tenants_named(own.column, glob)
            is_known = any(all(each.includes(tenant) for each in tenants) for tenant in found)
        if not is_known:
            yield glob


def _existing(column: str, tenants: Iterable[Filter]) -> Collection[str]:
    """The values of a column that exist without any record."""
    if column == _TENANT:
        return [_LITERAL.sub(r"\1", glob) for each in tenants if each.is_limit for glob in each.globs]
    return _FIXED.get(column, ())

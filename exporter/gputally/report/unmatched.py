"""Values of filters that no record has: "none" is no answer to a misspelt name."""

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Final

from gputally.ledger.protocol import LedgerReader
from gputally.model.allocation import Outcome
from gputally.model.placement.verdict import Reason
from gputally.model.placement.wait import WaitCause
from gputally.model.price import Purchase
from gputally.report.calendar.periods import TIME_DIMENSIONS
from gputally.report.report_query import Filter, ReportQuery

_TENANT: Final = "tenant"
_FIXED: Final[Mapping[str, Collection[str]]] = {
    "outcome": tuple(Outcome),
    "job_outcome": tuple(Outcome),
    "purchase": tuple(Purchase),
    "cause": tuple(WaitCause),
    "reason": tuple(Reason),
}
"""Columns of which all values are known."""
_HIDDEN: Final = ("occupying_tenant", *TIME_DIMENSIONS)
"""Columns that are not looked up: others' tenants, of which a restricted reader must not learn, and times, which a
short period may not have."""


def unmatched(reader: LedgerReader, query: ReportQuery) -> list[str]:
    """The values of the query's filters that no record of any time has, such as `tenant visoin`.

    With filters of tenants, only the records of these count, so that a restricted reader learns nothing of others. Of
    several filters of a column, the first is the reader's own. Raises: LedgerError.
    """
    own = {each.column: each for each in reversed(query.filters)}
    return [f"{column} {glob}" for column, each in own.items() for glob in _missing(reader, query, each)]


def _missing(reader: LedgerReader, query: ReportQuery, own: Filter) -> Iterator[str]:
    column, tenants = own.column, [each for each in query.filters if each.column == _TENANT and each is not own]
    for glob in own.globs:
        if column in _FIXED:
            is_known = any(fnmatchcase(value, glob) for value in _FIXED[column])
        else:
            is_known = column in _HIDDEN or any(
                all(each.includes(tenant) for each in tenants) for tenant in reader.tenants_named(column, glob)
            )
        if not is_known:
            yield glob

"""What to report."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from msgspec import Struct

from gputally.ledger.records import Window
from gputally.report.calendar.periods import TIME_DIMENSIONS, Calendar, Periods, periods_of

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "tier": ("tier",),
    "tenant": ("tenant",),
    "namespace": ("namespace",),
    "job": ("namespace", "job_kind", "job"),
    "job_kind": ("job_kind",),
    "pod": ("namespace", "pod"),
    "queue": ("queue",),
    "gpu_model": ("gpu_model",),
    "node": ("node",),
    "pool": ("pool",),
    "resource": ("resource",),
    "purchase": ("purchase",),
    "outcome": ("outcome",),
    "job_outcome": ("job_outcome",),
    **{dimension: (dimension,) for dimension in TIME_DIMENSIONS},
}
"""The columns that identify a line, by each dimension of a report. A job or pod is unique only in its namespace."""
FILTERED: Final = tuple(dict.fromkeys(column for columns in COLUMNS.values() for column in columns))
"""The columns that a filter can name."""


class Filter(NamedTuple):
    """Includes the values of a column that match any of the `globs`.

    With `is_limit`, the reader did not ask for it: it is all that the reader may see, and its globs are literal.
    """

    column: str
    globs: tuple[str, ...]
    is_limit: bool = False

    def includes(self, value: str) -> bool:
        """Whether the filter includes this value of its column."""
        return any(fnmatchcase(value, glob) for glob in self.globs)


class ReportQuery(Struct, frozen=True, kw_only=True):
    """What to report: the period, the dimensions of its lines, and which allocations and times."""

    window: Window
    by: tuple[str, ...]
    filters: tuple[Filter, ...] = ()
    calendar: Calendar = Calendar()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that identify a line, each once."""
        return tuple(dict.fromkeys(column for dimension in self.by for column in COLUMNS[dimension]))

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
        return all(each.includes(values[each.column]) for each in self.filters)

"""What to report."""

from collections.abc import Mapping
from datetime import UTC, tzinfo
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from msgspec import Struct

from gputally.ledger.records import Window
from gputally.report.periods import TIME_DIMENSIONS, Periods, periods_of

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
FILTERED: Final = tuple(
    dict.fromkeys(column for columns in COLUMNS.values() for column in columns if column not in TIME_DIMENSIONS)
)
"""The columns that a filter can name."""


class Filter(NamedTuple):
    """Includes the values of a column that match any of the `globs`."""

    column: str
    globs: tuple[str, ...]

    def includes(self, value: str) -> bool:
        """Whether the filter includes this value of its column."""
        return any(fnmatchcase(value, glob) for glob in self.globs)


class ReportQuery(Struct, frozen=True, kw_only=True):
    """What to report: the period, the dimensions of its lines, and which allocations; `zone` is that of days and hours.

    At most one of the dimensions is one of time.
    """

    window: Window
    by: tuple[str, ...]
    filters: tuple[Filter, ...] = ()
    zone: tzinfo = UTC

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that identify a line, each once."""
        return tuple(dict.fromkeys(column for dimension in self.by for column in COLUMNS[dimension]))

    @property
    def time(self) -> str | None:
        """The dimension of time, if there is one."""
        return next((each for each in self.by if each in TIME_DIMENSIONS), None)

    @property
    def time_column(self) -> int | None:
        """The place of that dimension among the columns."""
        return self.columns.index(self.time) if self.time else None

    @property
    def periods(self) -> Periods:
        """The periods of the window; without a dimension of time, one without a label."""
        return periods_of(self.time, self.window, self.zone) if self.time else Periods((), ("",))

    def includes(self, values: Mapping[str, str]) -> bool:
        """Whether all filters include these values of columns."""
        return all(each.includes(values[each.column]) for each in self.filters)

"""What to report."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from msgspec import Struct

from gputally.ledger.records import Window

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
}
"""The columns that identify a line, by each dimension of a report. A job or pod is unique only in its namespace."""


class Filter(NamedTuple):
    """Includes the values of a column that match any of the `globs`."""

    column: str
    globs: tuple[str, ...]

    def includes(self, value: str) -> bool:
        """Whether the filter includes this value of its column."""
        return any(fnmatchcase(value, glob) for glob in self.globs)


class ReportQuery(Struct, frozen=True, kw_only=True):
    """What to report: the period, the dimensions of its lines, and which allocations."""

    window: Window
    by: tuple[str, ...]
    filters: tuple[Filter, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that identify a line, each once."""
        return tuple(dict.fromkeys(column for dimension in self.by for column in COLUMNS[dimension]))

    def includes(self, values: Mapping[str, str]) -> bool:
        """Whether all filters include these values of columns."""
        return all(each.includes(values[each.column]) for each in self.filters)

"""What a reader of reports can choose: dimensions, filters, how free capacity is shown, the version of FOCUS."""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

TIME_DIMENSIONS: Final = ("hour", "day", "week", "month", "hour_of_day", "weekday", "hours")
"""A week is named by its Monday; `hours` are named hours, see `NamedHours`."""
RECURRING: Final = ("hour_of_day", "weekday", "hours")
"""The dimensions whose periods recur, so that two windows have the same ones."""
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
OF_CAPACITY: Final = ("gpu_model", "pool", "purchase", *TIME_DIMENSIONS)
"""The columns that also capacity has which nobody held."""
_OF_WAITS: Final = ("tier", "tenant", "namespace", "cause", "reason", "occupying_tier", "occupying_tenant")
WAIT_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    **{column: (column,) for column in _OF_WAITS},
    "pod": ("namespace", "pod"),
    **{dimension: (dimension,) for dimension in TIME_DIMENSIONS},
}
"""The columns that identify a line about waits, by each dimension. A pod is unique only in its namespace."""
WAIT_FILTERED: Final = (*_OF_WAITS, "pod", *TIME_DIMENSIONS)
"""The columns that a filter of waits can name."""
VICTIM_FILTERED: Final = ("tier", "tenant", "namespace", "pod", "job_kind", "job", "node")
"""The columns that a filter can name: those of the victim."""
INVOICE_DIMENSIONS: Final = ("tenant", "tier", "queue", "gpu_model", "pool", "resource", "purchase")
"""What rows of an invoice can stand for."""
ROWS: Final = "rows"
EVEN: Final = "even"
WEIGHTED: Final = "weighted"
SHARINGS: Final = (ROWS, EVEN, WEIGHTED)
"""Rows of its own, the same share for every row with a cost, or shares in proportion to this cost."""
FOCUS_VERSIONS: Final = ("1.2", "1.3", "1.4")
_SPECIAL: Final = re.compile(r"[]*?\[,]")


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


def literal(text: str) -> str:
    """A pattern of `--where` that matches exactly this text."""
    return _SPECIAL.sub(r"[\g<0>]", text)

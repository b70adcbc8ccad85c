"""The declaration of a metric: its name, its help text and the pure function that yields its rows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import repeat
from typing import Final, Generic, NamedTuple, TypeVar

from msgspec import Struct

View = TypeVar("View")
"""What a row function reads: an immutable snapshot with its evaluation time."""


class MetricType(StrEnum):
    """The OpenMetrics types in use."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


class Stability(StrEnum):
    """How a release may change a series."""

    ALPHA = "ALPHA"
    STABLE = "STABLE"


class Row(NamedTuple):
    """One sample; `labels` are values in the declared order, `created_us` (µs) is the start of a counter."""

    labels: tuple[str, ...]
    value: float
    created_us: int | None = None


class Columns(Struct, frozen=True):
    """Many rows as columns, for families with thousands of series. Iterates over its rows."""

    labels: Sequence[tuple[str, ...]]
    values: Sequence[float]
    created_us: Sequence[int | None] | None = None

    def __iter__(self) -> Iterator[Row]:
        return map(Row, self.labels, self.values, self.created_us or repeat(None))


class HistogramRow(NamedTuple):
    """One histogram; `buckets` are (upper bound as text, cumulative count), the last bound is +Inf."""

    labels: tuple[str, ...]
    buckets: tuple[tuple[str, int], ...]
    sum: float
    created_us: int | None = None


SUFFIX: Final = {MetricType.COUNTER: "_total", MetricType.INFO: "_info"}
"""The required suffix of a name by type; the family is the name without it."""


class Metric(Struct, Generic[View], frozen=True, kw_only=True, cache_hash=True):
    """The declaration from which exposition, documentation and the checks of dashboards and rules derive.

    `name` is the full literal name, so that a search finds it. Every row of `rows` has a value for each of `labels`.
    `reference_only` marks a metric for manual queries, which none of our dashboards and rules use.

    Raises: ValueError if a counter does not end in `_total` or an info in `_info`; `make verify` checks the rest.
    """

    name: str
    kind: MetricType
    help: str
    labels: tuple[str, ...] = ()
    rows: Callable[[View], Iterable[Row | HistogramRow]]
    stability: Stability = Stability.ALPHA
    reference_only: bool = False

    def __post_init__(self) -> None:
        suffix = SUFFIX.get(self.kind, "")
        if not self.name.endswith(suffix):
            raise ValueError(f"{self.name}: the name of a {self.kind} must end in {suffix}")

    @property
    def grows(self) -> bool:
        """Whether its values must never fall."""
        return self.kind in (MetricType.COUNTER, MetricType.HISTOGRAM)

    @property
    def family(self) -> str:
        """The name OpenMetrics gives the family: without `_total` or `_info`."""
        return self.name.removesuffix(SUFFIX.get(self.kind, ""))

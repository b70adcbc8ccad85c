"""The declaration of a metric: its name, its help text and the pure function that yields its rows."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import repeat
from typing import Any, Final, Generic, NamedTuple, TypeVar

from msgspec import Struct

View = TypeVar("View")
"""What a row function reads: an immutable snapshot with its evaluation time."""


class MetricType(StrEnum):
    """The types of OpenMetrics that are in use here."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


class Stability(StrEnum):
    """What a release may do to a series."""

    ALPHA = "ALPHA"
    STABLE = "STABLE"


class Row(NamedTuple):
    """One sample; `labels` are values in the declared order, `created_us` (µs) is when a counter began to count."""

    labels: tuple[str, ...]
    value: float
    created_us: int | None = None


class Columns(Struct, frozen=True):
    """Many rows by column: what a family of thousands of series yields. As an iterable it is its rows."""

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
"""The ending that a kind demands; the family is the name without it."""


class Metric(Struct, Generic[View], frozen=True, kw_only=True):
    """The declaration from which exposition, documentation and the checks of dashboards and rules derive.

    `name` is the full literal name, so that a search finds it. Every row of `rows` has a value for each of `labels`.
    `reference_only` says that it is there to be looked up, and that no dashboard or rule of ours reads it.

    Raises: ValueError if a counter does not end in `_total` or an info in `_info`; `lint` knows the finer rules.
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


_NAME: Final = re.compile(r"gputally(_[a-z][a-z0-9]*)+")
_LABEL: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_RESERVED: Final = ("_total", "_info", "_sum", "_count", "_bucket", "_created", "_gsum", "_gcount")
_BASE_UNIT: Final = {
    unit: base
    for base, units in {
        "seconds": "ns us ms sec secs nanoseconds microseconds milliseconds minutes hours days weeks",
        "bytes": "bits kb mb gb kib mib gib kilobytes megabytes gigabytes kibibytes mebibytes gibibytes",
        "ratio": "percent percentage pct",
        "joules": "kilojoules kwh",
        "watts": "milliwatts kilowatts",
        "volts": "millivolts",
        "celsius": "fahrenheit kelvin",
    }.items()
    for unit in units.split()
}
_ENDING: Final = {
    "second": "seconds",
    "byte": "bytes",
    "joule": "joules",
    "watt": "watts",
    "volt": "volts",
    "ratios": "ratio",
    "timestamp": "timestamp_seconds",
}
"""Last words that are nearly a unit, and the unit they should be."""
_FORMAT_LABELS: Final = frozenset({"le", "quantile"})
_TARGET_LABELS: Final = frozenset(
    {
        "cluster",
        "customer",
        "datacenter",
        "env",
        "instance",
        "job",
        "owner",
        "region",
        "service",
        "stage",
        "type",
        "zone",
    }
)
"""Names that scrape configurations attach to all series: ours would end up as `exported_...`."""


def lint(metric: Metric[Any]) -> list[str]:
    """The naming rules that `metric` breaks, each as `name: problem; remedy`; empty when there are none.

    Source: Prometheus docs practices/naming.md and instrumenting/writing_exporters.md.
    """
    checks = (_spelling, _ending, _units, _help, _labels)
    return [f"{metric.name}: {problem}" for check in checks for problem in check(metric)]


def lint_catalog(metrics: Iterable[Metric[Any]]) -> list[str]:
    """The problems of each metric, and names that two of them would expose."""
    catalog = list(metrics)
    names = Counter(name for metric in catalog for name in _exposed(metric))
    clashes = [f"{name}: exposed by {count} metrics; rename one" for name, count in names.items() if count > 1]
    return [problem for metric in catalog for problem in lint(metric)] + clashes


def _exposed(metric: Metric[Any]) -> set[str]:
    suffixes = ("_bucket", "_count", "_sum", "_created") if metric.kind is MetricType.HISTOGRAM else ()
    return {metric.name, metric.family, *(metric.name + suffix for suffix in suffixes)}


def _spelling(metric: Metric[Any]) -> Iterator[str]:
    if not _NAME.fullmatch(metric.name):
        yield "use gputally_ and lower-case words joined by single underscores"
    words = metric.name.split("_")
    if "by" in words:
        yield "labels name the dimensions; remove by from the name"
    yield from (
        f"remove the type {kind} from the name" for kind in MetricType if kind in words and kind is not MetricType.INFO
    )


def _ending(metric: Metric[Any]) -> Iterator[str]:
    if suffix := next((suffix for suffix in _RESERVED if metric.family.endswith(suffix)), None):
        yield f"{suffix} is reserved; choose another ending"


def _units(metric: Metric[Any]) -> Iterator[str]:
    words = metric.family.split("_")
    yield from (f"{word} is not a base unit; use {_BASE_UNIT[word]}" for word in words if word in _BASE_UNIT)
    if unit := _ENDING.get(words[-1]):
        yield f"end in _{unit}"


def _help(metric: Metric[Any]) -> Iterator[str]:
    text = metric.help
    if not text.endswith(".") or ". " in text or not text.isprintable() or text[:1].islower():
        yield "help is one sentence: a capital first, one full stop last"


def _labels(metric: Metric[Any]) -> Iterator[str]:
    for label, count in Counter(metric.labels).items():
        if count > 1:
            yield f"label {label} is declared {count} times"
        if not _LABEL.fullmatch(label):
            yield f"label {label!r}: use lower-case words joined by single underscores"
        if label in _FORMAT_LABELS:
            yield f"label {label} belongs to the format"
        if label in _TARGET_LABELS:
            yield f"label {label} clashes with target labels"

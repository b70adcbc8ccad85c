"""The text formats, written for speed: Prometheus text 0.0.4 and OpenMetrics 1.0.0.

Every byte is the one that `prometheus_client` writes for the same families, except that the older
format carries no `_created` series: Prometheus would store them as gauges of their own.
What does not change between scrapes (headers, names with their labels) is rendered once and kept.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from gputally.catalog.metric import Columns, HistogramRow, Metric, MetricType, Row
from gputally.model.units import US_PER_SECOND

END: Final = b"# EOF\n"
"""How an OpenMetrics exposition ends; without it the scraper takes the answer for a torn one."""

_SMALLEST: Final = 1e-4
_LARGEST: Final = 1e6
"""From one to below the other, Go, Python and JSON write a number alike."""
_EXPONENT: Final = 1e16
"""From here on, Python and JSON too write an exponent, though not the same way."""
_EXPONENTS: Final = tuple(f"e+{digits - 1:02d}" for digits in range(20))
"""What stands for the decimal point of a number of so many whole digits."""
_SPARE: Final = 256
"""Label sets kept beyond twice those of the last scrape."""

Rows: TypeAlias = Iterable[Row | HistogramRow]
"""What a metric yields; all rows of one metric are of one shape, by its kind."""


def render(metrics: Iterable[tuple[Metric[Any], Rows]], *, openmetrics: bool, more: bytes = b"") -> bytes:
    """The exposition of all `metrics` with their rows, then `more` (see `registry_text`).

    A metric without rows keeps its HELP and TYPE. In OpenMetrics, counters and histograms carry `_created`.

    Raises: ValueError for a row with more or fewer values than its metric has labels.
    """
    lines: list[str] = []
    for metric, rows in metrics:
        lines.append(_header(metric, openmetrics=openmetrics))
        if metric.kind is MetricType.HISTOGRAM:
            lines += _histograms(metric, list(cast("Iterable[HistogramRow]", rows)), created=openmetrics)
        else:
            created = openmetrics and metric.kind is MetricType.COUNTER
            lines += _samples(metric, _by_column(cast("Iterable[Row]", rows)), created=created)
    return "".join(lines).encode() + more + (END if openmetrics else b"")


def registry_text(registry: CollectorRegistry, *, openmetrics: bool) -> bytes:
    """What the collectors of `registry` (process, platform, garbage collector) say, without the final `# EOF`."""
    if not openmetrics:
        return generate_latest(registry)
    text: bytes = generate_openmetrics(registry)  # type: ignore[no-untyped-call]  # the client's gap
    return text.removesuffix(END)


def numbers(values: Iterable[float]) -> list[str]:
    """Each of `values` as Go writes a float64: the shortest text that reads back the same.

    JSON's writer is 15 times as fast as `repr` and agrees with it on all but the very large and very small.
    """
    floats = [value * 1.0 for value in values]
    texts = msgspec.json.encode(floats).decode()[1:-1].split(",")
    return [
        text if not value or _SMALLEST <= value < _LARGEST else _unusual(value, text)
        for value, text in zip(floats, texts, strict=False)  # no values give one empty text
    ]


def _unusual(value: float, text: str) -> str:
    if _LARGEST <= value < _EXPONENT:  # positional in JSON, an exponent in Go
        whole, _, fraction = text.partition(".")
        digits = (whole[1:] + fraction).rstrip("0")
        return f"{whole[0]}.{digits}{_EXPONENTS[len(whole)]}" if digits else whole[0] + _EXPONENTS[len(whole)]
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


class _Series(dict[tuple[str, ...], str]):
    """`name{labels} ` by label values, rendered when first asked for: a lookup costs a tenth of rendering."""

    def __init__(self, name: str, labels: tuple[str, ...]) -> None:
        super().__init__()
        self._name = name
        self._labels = labels
        self._latest: tuple[Sequence[tuple[str, ...]], list[str]] = ((), [])

    def __missing__(self, values: tuple[str, ...]) -> str:
        pairs = sorted(zip(self._labels, map(escaped, values), strict=True))
        inside = ",".join(f'{label}="{value}"' for label, value in pairs)
        text = f"{self._name}{{{inside}}} " if inside else f"{self._name} "
        self[values] = text
        return text

    def prefixes(self, labels: Sequence[tuple[str, ...]]) -> list[str]:
        """Those of a whole family; kept for as long as it comes with the same labels."""
        if labels is not self._latest[0]:
            self._latest = (labels, [self[values] for values in labels])
            self.trim(len(labels))
        return self._latest[1]

    def trim(self, used: int) -> None:
        """Forget all if label sets that are gone outnumber the `used` ones: memory follows what is exposed."""
        if len(self) > 2 * used + _SPARE:
            self.clear()


@lru_cache(maxsize=4096)
def _series(name: str, labels: tuple[str, ...]) -> _Series:
    return _Series(name, labels)


def escaped(value: str) -> str:
    r"""Backslash, quote and newline escaped; what UTF-8 cannot carry becomes `?` instead of failing the scrape."""
    valid = value.encode(errors="replace").decode()
    return valid.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


@lru_cache(maxsize=4096)
def _header(metric: Metric[Any], *, openmetrics: bool) -> str:
    name = metric.family if openmetrics else metric.name
    kind = "gauge" if metric.kind is MetricType.INFO and not openmetrics else metric.kind
    text = metric.help.replace("\\", r"\\").replace("\n", r"\n")
    if openmetrics:
        text = text.replace('"', r"\"")
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def _by_column(rows: Iterable[Row]) -> Columns:
    if isinstance(rows, Columns):
        return rows
    columns = tuple(zip(*rows, strict=True))
    return Columns(*columns) if columns else Columns((), ())


def _samples(metric: Metric[Any], samples: Columns, *, created: bool) -> list[str]:
    prefixes = _series(metric.name, metric.labels).prefixes(samples.labels)
    lines = [f"{prefix}{text}\n" for prefix, text in zip(prefixes, numbers(samples.values), strict=True)]
    if created and samples.created_us:
        births = _births(metric, samples.labels, samples.created_us)
        return [line + birth for line, birth in zip(lines, births, strict=True)]
    return lines


def _births(metric: Metric[Any], labels: Sequence[tuple[str, ...]], created_us: Sequence[int | None]) -> list[str]:
    """The `_created` line of each row, empty where nobody knows."""
    prefixes = _series(f"{metric.family}_created", metric.labels).prefixes(labels)
    return ["" if us is None else f"{prefix}{_seconds(us)}\n" for prefix, us in zip(prefixes, created_us, strict=True)]


@lru_cache(maxsize=65_536)
def _seconds(us: int) -> str:
    return numbers([us / US_PER_SECOND])[0]


def _histograms(metric: Metric[Any], rows: Sequence[HistogramRow], *, created: bool) -> list[str]:
    buckets = _series(f"{metric.name}_bucket", (*metric.labels, "le"))
    labels, created_us = [row.labels for row in rows], [row.created_us for row in rows]
    births = _births(metric, labels, created_us) if created else [""] * len(rows)
    lines: list[str] = []
    for row, birth in zip(rows, births, strict=True):
        texts = numbers([count for _, count in row.buckets])
        lines += [f"{buckets[*row.labels, le]}{text}\n" for (le, _), text in zip(row.buckets, texts, strict=True)]
        lines += _totals(metric, row, texts[-1])
        lines.append(birth)
    buckets.trim(sum(len(row.buckets) for row in rows))
    return lines


def _totals(metric: Metric[Any], row: HistogramRow, count: str) -> list[str]:
    if float(row.buckets[0][0]) < 0:  # such a sum could fall; the format has neither then
        return []
    names = (f"{metric.name}_count", f"{metric.name}_sum")
    texts = (count, *numbers([row.sum]))
    return [f"{_series(name, metric.labels)[row.labels]}{text}\n" for name, text in zip(names, texts, strict=True)]

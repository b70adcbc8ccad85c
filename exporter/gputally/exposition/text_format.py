"""The text formats, for all or some tenants, optimised for speed: Prometheus text 0.0.4 and OpenMetrics 1.0.0.

The output is byte for byte that of `prometheus_client` for the same families, except that the older
format has no `_created` series: Prometheus would store them as separate gauges.

Parts that do not change between scrapes (headers, names with their labels) are rendered once and cached, except those
of large families, which have a row for each pod: they are written within little memory.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from io import BytesIO
from itertools import islice
from typing import Any, Final, TypeAlias, cast

import msgspec

from gputally.catalog.metric import Columns, HistogramRow, Metric, MetricType, Row
from gputally.model.units import US_PER_SECOND

END: Final = b"# EOF\n"
"""The end of an OpenMetrics exposition; without it, the scraper treats the response as truncated."""

_SMALLEST: Final = 1e-4
_LARGEST: Final = 1e6
"""From _SMALLEST to below _LARGEST, Go, Python and JSON format a number identically."""
_EXPONENT: Final = 1e16
"""From here on, Python and JSON also write an exponent, but in different formats."""
_EXPONENTS: Final = tuple(f"e+{digits - 1:02d}" for digits in range(20))
"""The exponent by number of integer digits."""
_MOST_KEPT: Final = 1 << 18
"""Size of a text that is kept for the next scrape: larger ones are those of counters of GPU-time, which always grow."""
_SPARE: Final = 256
"""Label sets that may be cached in addition to twice those of the last scrape."""

_NULL: Final = b"null"
"""JSON for all that is not finite."""

Rows: TypeAlias = Iterable[Row | HistogramRow]
"""The rows of one metric, all of the type that its kind determines."""
Shown: TypeAlias = Columns | Sequence[Row | HistogramRow]
"""The rows of one metric, all at once."""
_PART_ROWS: Final = 1000
Gauges: TypeAlias = Iterable[tuple[Metric[Any], Rows]]
"""Gauges and infos with their rows; no counters or histograms."""
_SPECIAL: Final = re.compile('[\\\\"\n\ud800-\udfff]')
"""Characters that need escaping; names in Kubernetes have none."""
_TENANT: Final = re.compile(
    rb'[a-zA-Z_:][\w:]*\{(?:\w+="(?:[^"\\\n]|\\.)*",)*?(?:tenant|team)="((?:[^"\\\n]|\\.)*)"[,}]'
)
"""Matches at the start of a line, with any label values: quotes in them are escaped."""


def render(metrics: Iterable[tuple[Metric[Any], Rows]], *, openmetrics: bool, more: bytes = b"") -> bytes:
    """The exposition of all `metrics` with their rows, then `more` (see `registry_text`).

    A metric without rows keeps its HELP and TYPE. In OpenMetrics, counters and histograms carry `_created`.

    Raises: ValueError for a row with more or fewer values than its metric has labels.
    """
    parts = [_family(metric, rows, openmetrics=openmetrics) for metric, rows in metrics]
    return b"".join((*parts, more, END if openmetrics else b""))


def _family(metric: Metric[Any], rows: Rows, *, openmetrics: bool) -> bytes:
    """The text of one family; that of the last scrape if it is still true, as for most within seconds."""
    latest = _latest(metric, openmetrics=openmetrics)
    shown = list(rows) if metric.kind is MetricType.HISTOGRAM else _by_column(cast("Iterable[Row]", rows))
    if shown == latest.shown:
        return latest.text
    text = _rendered(metric, shown, openmetrics=openmetrics)
    if len(text) <= _MOST_KEPT:
        latest.shown, latest.text = shown, text
    return text


def _rendered(metric: Metric[Any], shown: Shown, *, openmetrics: bool) -> bytes:
    """Encoded at once, as all lines together take more memory than their text."""
    if isinstance(shown, Columns):
        lines = _samples(metric, shown, created=openmetrics and metric.kind is MetricType.COUNTER)
    else:
        lines = _histograms(metric, cast("Sequence[HistogramRow]", shown), created=openmetrics)
    return "".join((header(metric, openmetrics=openmetrics), *lines)).encode()


class _Latest:
    """The last text of a family, and what it shows."""

    def __init__(self) -> None:
        self.shown: Shown | None = None
        self.text = b""


@lru_cache(maxsize=4096)
def _latest(_metric: Metric[Any], *, openmetrics: bool) -> _Latest:  # noqa: ARG001 - the key
    return _Latest()


def numbers(values: Iterable[float]) -> list[str]:
    """Each of `values` as Go formats a float64: the shortest text that parses to the same value.

    The JSON encoder is 15 times as fast as `repr`, with the same result except for very large and very small values.
    """
    floats = [value * 1.0 for value in values]
    encoded = msgspec.json.encode(floats)
    texts = encoded.decode()[1:-1].split(",")
    if _NULL not in encoded and max(floats, default=0) < _LARGEST and min(filter(None, floats), default=1) >= _SMALLEST:
        return texts if floats else []
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
    """`name{labels} ` by label values, rendered on first use: a lookup costs a tenth of rendering."""

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
        """The prefixes of a whole family, cached for the same labels object."""
        if labels is not self._latest[0]:
            self._latest = (labels, [self[values] for values in labels])
            self.trim(len(labels))
        return self._latest[1]

    def trim(self, used: int) -> None:
        """Clear the cache if stale label sets outnumber the `used` ones, to bound memory by the exposed series."""
        if len(self) > 2 * used + _SPARE:
            self.clear()


@lru_cache(maxsize=4096)
def _series(name: str, labels: tuple[str, ...]) -> _Series:
    return _Series(name, labels)


def escaped(value: str) -> str:
    r"""Escapes backslash, quote and newline; replaces characters that UTF-8 cannot encode by `?`."""
    valid = value.encode(errors="replace").decode()
    return valid.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


@lru_cache(maxsize=4096)
def header(metric: Metric[Any], *, openmetrics: bool) -> str:
    """The HELP and TYPE lines of a metric."""
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
        created_lines = _created_lines(metric, samples.labels, samples.created_us)
        return [line + created_line for line, created_line in zip(lines, created_lines, strict=True)]
    return lines


def _created_lines(
    metric: Metric[Any], labels: Sequence[tuple[str, ...]], created_us: Sequence[int | None]
) -> list[str]:
    """The `_created` line of each row, empty if the time is unknown."""
    prefixes = _series(f"{metric.family}_created", metric.labels).prefixes(labels)
    return ["" if us is None else f"{prefix}{_seconds(us)}\n" for prefix, us in zip(prefixes, created_us, strict=True)]


@lru_cache(maxsize=65_536)
def _seconds(us: int) -> str:
    return numbers([us / US_PER_SECOND])[0]


def _histograms(metric: Metric[Any], rows: Sequence[HistogramRow], *, created: bool) -> list[str]:
    buckets = _series(f"{metric.name}_bucket", (*metric.labels, "le"))
    labels, created_us = [row.labels for row in rows], [row.created_us for row in rows]
    created_lines = _created_lines(metric, labels, created_us) if created else [""] * len(rows)
    lines: list[str] = []
    for row, created_line in zip(rows, created_lines, strict=True):
        texts = numbers([count for _, count in row.buckets])
        lines += [f"{buckets[*row.labels, le]}{text}\n" for (le, _), text in zip(row.buckets, texts, strict=True)]
        lines += _totals(metric, row, texts[-1])
        lines.append(created_line)
    buckets.trim(sum(len(row.buckets) for row in rows))
    return lines


def _totals(metric: Metric[Any], row: HistogramRow, count: str) -> list[str]:
    if float(row.buckets[0][0]) < 0:  # the sum can fall, so the format allows neither count nor sum
        return []
    names = (f"{metric.name}_count", f"{metric.name}_sum")
    texts = (count, *numbers([row.sum]))
    return [f"{_series(name, metric.labels)[row.labels]}{text}\n" for name, text in zip(names, texts, strict=True)]


def render_large(metrics: Gauges, *, openmetrics: bool) -> bytes:
    """Render as `render` does, byte for byte, without its cache of label sets: 25 MiB for 20,000 pods.

    Raises: ValueError for a row with more or fewer values than its metric has labels, and for a counter or histogram.
    """
    body = BytesIO()
    for metric, rows in metrics:
        body.writelines(_parts(metric, rows, openmetrics=openmetrics))
    if openmetrics:
        body.write(END)
    return body.getvalue()  # which copies nothing


def _parts(metric: Metric[Any], rows: Rows, *, openmetrics: bool) -> Iterator[bytes]:
    if metric.kind not in (MetricType.GAUGE, MetricType.INFO):
        raise ValueError(f"{metric.name} is a {metric.kind}; render_large writes only gauges")
    yield header(metric, openmetrics=openmetrics).encode()
    prefix = _prefix(metric.name, metric.labels)
    remaining = iter(cast("Iterable[Row]", rows))
    while part := tuple(islice(remaining, _PART_ROWS)):
        values = numbers([row.value for row in part])
        yield "".join(f"{prefix(row.labels)}{text}\n" for row, text in zip(part, values, strict=True)).encode()


def _prefix(name: str, labels: tuple[str, ...]) -> Callable[[Sequence[str]], str]:
    """A function from the values of labels to `name{labels} `, with the labels sorted by name."""
    order = sorted(range(len(labels)), key=labels.__getitem__)
    inside = ",".join(f'{labels[place]}="%s"' for place in order)
    form = f"{name}{{{inside}}} " if inside else f"{name} "

    def prefix(values: Sequence[str]) -> str:
        if len(values) != len(labels):
            raise ValueError(f"{name} has {len(labels)} labels, but a row has {len(values)} values")
        if _SPECIAL.search("".join(values)):
            values = [*map(escaped, values)]
        return form % tuple([values[place] for place in order])

    return prefix


def filter_by_tenant(exposition: bytes, tenants: Collection[str]) -> bytes:
    """Only the series of these tenants, with all comment lines (`# ...`).

    Series without the label `tenant`, or `team` in metrics of others, such as the capacity of nodes, are removed.
    """
    escaped_tenants = {escaped(tenant).encode() for tenant in tenants}
    return b"".join(line + b"\n" for line in exposition.split(b"\n")[:-1] if _belongs(line, escaped_tenants))


def _belongs(line: bytes, escaped_tenants: Collection[bytes]) -> bool:
    if line.startswith(b"#"):
        return True
    found = _TENANT.match(line)
    return found is not None and found[1] in escaped_tenants

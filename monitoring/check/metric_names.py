"""Every metric of the catalog follows the naming conventions of Prometheus, and no two expose the same name."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gputally.catalog.metric import Metric, MetricType
from monitoring.check.problem import Problem

_CATALOG: Final = "exporter/gputally/catalog"
_NAME: Final = re.compile(r"gputally(_[a-z][a-z0-9]*)+")
_FOREIGN: Final = frozenset({"training_job_cost_usd"})
"""Names that others gave to a metric, which their dashboards and alerts query; each is opt-in."""
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


def problems_of(metric: Metric[Any]) -> list[str]:
    """The naming rules that `metric` breaks, each as `problem; remedy`.

    Source: Prometheus docs practices/naming.md and instrumenting/writing_exporters.md.
    """
    checks = (_spelling, _ending, _units, _help, _labels)
    return [problem for check in checks for problem in check(metric)]


def problems(metrics: Iterable[Metric[Any]]) -> Iterator[Problem]:
    """The problems of each metric, and names that two of them would expose."""
    catalog = list(metrics)
    for metric in catalog:
        yield from (Problem(_CATALOG, metric.name, text) for text in problems_of(metric))
    for name, count in Counter(name for metric in catalog for name in _exposed(metric)).items():
        if count > 1:
            yield Problem(_CATALOG, name, f"exposed by {count} metrics; rename one")


def _exposed(metric: Metric[Any]) -> set[str]:
    suffixes = ("_bucket", "_count", "_sum", "_created") if metric.kind is MetricType.HISTOGRAM else ()
    return {metric.name, metric.family, *(metric.name + suffix for suffix in suffixes)}


def _spelling(metric: Metric[Any]) -> Iterator[str]:
    if not _NAME.fullmatch(metric.name) and metric.name not in _FOREIGN:
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

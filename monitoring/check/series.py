"""The series that dashboards and rules may read: those of the catalog, a few of others, and those that rules record."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from gputally.catalog.metric import Metric, MetricType
from gputally.catalog.reference import GROUPS
from monitoring.allowed import Foreign
from monitoring.check import dimension
from monitoring.check.dimension import COUNT, STATE, Dimension

_WHETHER: Final = ("Whether ", "1 ")
"""How the help of a gauge begins that is 0 or 1."""


class Series(NamedTuple):
    """The labels it has or may have, whether it only grows, its dimension, and that of its buckets."""

    labels: frozenset[str]
    dimension: Dimension
    grows: bool = False
    bounds: Dimension | None = None


Vocabulary = Mapping[str, Series]
"""Series by name."""

METRICS: Final[tuple[Metric[Any], ...]] = tuple(metric for group in GROUPS.values() for metric in group)


def exposed(metric: Metric[Any]) -> Iterator[str]:
    """The names of its series."""
    if metric.kind is MetricType.HISTOGRAM:
        yield from (f"{metric.name}{ending}" for ending in ("_bucket", "_sum", "_count"))
    else:
        yield metric.name


def vocabulary(
    metrics: Iterable[Metric[Any]], *, foreign: Mapping[str, Foreign], target: Iterable[str]
) -> dict[str, Series]:
    """What we and others expose; all of it may have the labels `target`."""
    ours = {name: _series(metric, name) for metric in metrics for name in exposed(metric)}
    found = {**ours, **{name: _foreign(each) for name, each in foreign.items()}}
    return {name: each._replace(labels=each.labels | frozenset(target)) for name, each in found.items()}


def _foreign(metric: Foreign) -> Series:
    return Series(frozenset(metric.labels), dimension.named(metric.dimension), metric.grows)


def _series(metric: Metric[Any], name: str) -> Series:
    labels, own = frozenset(metric.labels), dimension.of_name(metric.name)
    if name.endswith("_bucket"):
        return Series(labels | {"le"}, COUNT, metric.grows, own)
    if metric.kind is MetricType.HISTOGRAM and name.endswith("_count"):
        return Series(labels, COUNT, metric.grows)
    if metric.kind is MetricType.GAUGE and metric.help.startswith(_WHETHER):
        return Series(labels, STATE)
    return Series(labels, own, metric.grows)

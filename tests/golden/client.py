"""The same families rendered by prometheus_client, as the byte-for-byte reference."""

from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.core import Metric as Family
from prometheus_client.openmetrics import exposition

from gputally.catalog.metric import HistogramRow, Metric, MetricType, Row
from gputally.model.units import US_PER_SECOND

Families = Iterable[tuple[Metric[Any], Iterable[Row | HistogramRow]]]


def rendered(families: Families, *, openmetrics: bool) -> bytes:
    """The output of prometheus_client; the older text format has no `_created`."""
    registry = CollectorRegistry()
    registry.register(_Collector([_family(metric, rows, created=openmetrics) for metric, rows in families]))
    return generate_openmetrics(registry) if openmetrics else generate_latest(registry)


def generate_openmetrics(registry: CollectorRegistry) -> bytes:
    """The client's OpenMetrics text; adds the missing type annotation."""
    text: bytes = exposition.generate_latest(registry)  # type: ignore[no-untyped-call]  # untyped in the client
    return text


class _Collector:
    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def describe(self) -> Iterator[Family]:
        return iter(())

    def collect(self) -> Iterator[Family]:
        return iter(self._families)


def _family(metric: Metric[Any], rows: Iterable[Row | HistogramRow], *, created: bool) -> Family:
    family: Family
    match metric.kind:
        case MetricType.COUNTER:
            family = CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
        case MetricType.GAUGE:
            family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
        case MetricType.INFO:
            family = InfoMetricFamily(metric.family, metric.help, labels=metric.labels)
        case MetricType.HISTOGRAM:
            family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    for row in rows:
        _add(family, row)
        if created and row.created_us is not None and metric.kind in (MetricType.COUNTER, MetricType.HISTOGRAM):
            labels = dict(zip(metric.labels, row.labels, strict=True))
            family.add_sample(f"{family.name}_created", labels, row.created_us / US_PER_SECOND)
    return family


def _add(family: Family, row: Row | HistogramRow) -> None:
    match family, row:
        case CounterMetricFamily() | GaugeMetricFamily(), Row():
            family.add_metric(row.labels, row.value)
        case InfoMetricFamily(), Row():
            family.add_metric(row.labels, {})
        case HistogramMetricFamily(), HistogramRow():
            family.add_metric(row.labels, row.buckets, row.sum)

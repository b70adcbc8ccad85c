"""The text formats for large families of gauges, such as those with a row for each pod, within little memory."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from itertools import islice
from typing import Any, Final, TypeAlias, cast

from gputally.catalog.metric import Metric, MetricType, Row
from gputally.export.text import END, Rows, escaped, header, numbers

_PART_ROWS: Final = 1000

Gauges: TypeAlias = Iterable[tuple[Metric[Any], Rows]]
"""Gauges and infos with their rows; no counters or histograms."""

_SPECIAL: Final = re.compile('[\\\\"\n\ud800-\udfff]')
"""Characters that need escaping; names in Kubernetes have none."""


def render_large(metrics: Gauges, *, openmetrics: bool) -> bytes:
    """The same bytes as `text.render`, which caches the text of every label set: for 20,000 pods, that is 25 MiB.

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

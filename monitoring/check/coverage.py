"""Whether every metric serves somebody."""

from collections.abc import Iterable, Iterator
from typing import Any

from gputally.catalog.metric import Metric
from monitoring.check.answer import Answer
from monitoring.check.problem import Problem
from monitoring.check.series import exposed

_CATALOG = "exporter/gputally/catalog"


def problems(metrics: Iterable[Metric[Any]], answers: Iterable[Answer]) -> Iterator[Problem]:
    """Metrics that no dashboard and no rule reads, and those said to be only for reference that one does."""
    used = {name for answer in answers for name in answer.names}
    for metric in metrics:
        read = used & set(exposed(metric))
        if not read and not metric.reference_only:
            yield Problem(
                _CATALOG, metric.name, "no dashboard or rule reads it; draw it, or declare it reference_only=True"
            )
        if read and metric.reference_only:
            yield Problem(_CATALOG, metric.name, "reference_only, but it is read; take reference_only out")

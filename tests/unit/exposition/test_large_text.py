"""Large families of gauges are written as all others are."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.catalog.metric import Metric, MetricType, Row
from gputally.exposition.text_format import render, render_large

FORMATS = pytest.mark.parametrize("openmetrics", [False, True])
GAUGE: Metric[Any] = Metric(
    name="gputally_pod_gpus", kind=MetricType.GAUGE, help='GPUs of a "pod".', labels=("pod", "a"), rows=lambda _: ()
)
INFO: Metric[Any] = Metric(
    name="gputally_pod_info", kind=MetricType.INFO, help="Pods.", labels=("pod",), rows=lambda _: ()
)
BARE: Metric[Any] = Metric(name="gputally_pods", kind=MetricType.GAUGE, help="Pods.", rows=lambda _: ())
COUNTER: Metric[Any] = Metric(name="gputally_x_total", kind=MetricType.COUNTER, help="X.", rows=lambda _: ())


@FORMATS
@given(rows=st.lists(st.tuples(st.text(), st.text(), st.floats() | st.integers(min_value=0, max_value=10**18))))
def test_it_writes_the_same_bytes(rows: list[tuple[str, str, float]], *, openmetrics: bool) -> None:
    gauges = [Row((pod, other), value) for pod, other, value in rows]
    metrics = [(GAUGE, gauges), (INFO, [Row((row.labels[0],), 1) for row in gauges]), (BARE, [Row((), math.inf)])]

    assert render_large(metrics, openmetrics=openmetrics) == render(metrics, openmetrics=openmetrics)


@FORMATS
def test_more_rows_than_are_rendered_at_once_all_appear(*, openmetrics: bool) -> None:
    rows = [Row((f"pod-{number}", "x"), number) for number in range(2_501)]

    assert render_large([(GAUGE, iter(rows))], openmetrics=openmetrics) == render(
        [(GAUGE, rows)], openmetrics=openmetrics
    )


def test_a_row_that_does_not_fit_its_labels_is_refused() -> None:
    with pytest.raises(ValueError, match=r"gputally_pod_info has 1 labels, but a row has 2 values"):
        render_large([(INFO, [Row(("a", "b"), 1)])], openmetrics=False)


def test_a_counter_is_refused() -> None:
    with pytest.raises(ValueError, match="gputally_x_total"):
        render_large([(COUNTER, [Row((), 1)])], openmetrics=False)

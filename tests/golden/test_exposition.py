import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gputally.catalog.metric import HistogramRow, Metric, MetricType, Row
from gputally.exposition.text_format import render
from tests.conftest import Golden
from tests.golden.client import Families, rendered

FORMATS = pytest.mark.parametrize("openmetrics", [False, True], ids=["text", "openmetrics"])
NASTY_HELP = 'Says "back\\slash"\nand\ttab, ünïcode.'
BORN_US = 1_760_000_000_123_456


def metric(kind: MetricType, name: str, *labels: str, text: str = NASTY_HELP) -> Metric[Any]:
    return Metric(name=name, kind=kind, help=text, labels=labels, rows=lambda _: ())


COUNTER = metric(MetricType.COUNTER, "gputally_allocated_gpu_seconds_total", "tier", "tenant")
GAUGE = metric(MetricType.GAUGE, "gputally_capacity_gpus", "node", "gpu_model")
INFO = metric(MetricType.INFO, "gputally_build_info", "version", "revision")
HISTOGRAM = metric(MetricType.HISTOGRAM, "gputally_pending_duration_seconds", "tier", "a_pool")
BARE = metric(MetricType.GAUGE, "gputally_pods")

NASTY: Families = [
    (
        COUNTER,
        [Row(("prod", 'quo"te'), 1e6, BORN_US), Row(("", "back\\slash"), 12_345_678.25), Row(("new\nline", "ü"), 0)],
    ),
    (GAUGE, [Row(("n", str(value)), value) for value in (math.nan, math.inf, -math.inf, -0.0, 1e-5, 1e16, 2**60 + 1)]),
    (INFO, [Row(("0.1.0", ""), 1)]),
    (HISTOGRAM, [HistogramRow(("batch", "p\\q"), (("0.5", 0), ("10.0", 3), ("+Inf", 4_000_000)), 71.25, BORN_US)]),
    (BARE, [Row((), 7)]),
    (metric(MetricType.COUNTER, "gputally_nothing_total", "tier"), []),
    (metric(MetricType.HISTOGRAM, "gputally_never_seconds"), []),
]


@FORMATS
def test_the_exposition_equals_the_clients_byte_for_byte(*, openmetrics: bool) -> None:
    assert render(NASTY, openmetrics=openmetrics) == rendered(NASTY, openmetrics=openmetrics)


@pytest.mark.parametrize(("openmetrics", "name"), [(False, "nasty.prom"), (True, "nasty.openmetrics")])
def test_the_nasty_scrape_is_as_recorded(golden: Golden, *, openmetrics: bool, name: str) -> None:
    golden.check(name, render(NASTY, openmetrics=openmetrics))


valid_text = st.text(st.characters(codec="utf-8"))
label_sets = st.tuples(valid_text, valid_text)
values = st.one_of(
    st.floats(),
    st.floats(min_value=0, max_value=1e17),
    st.integers(min_value=-(2**80), max_value=2**80),
    st.integers(min_value=0, max_value=10**9).map(float),
)
births = st.none() | st.integers(min_value=0, max_value=4 * 10**15)


@FORMATS
@given(text=valid_text, rows=st.lists(st.builds(Row, label_sets, values, births)))
@example(
    text="", rows=[Row(("", ""), value) for value in (1e-4, 9.999e-5, 999_999.9999999999, 1e6, 1e15, 1e16, 5e-324)]
)
def test_any_labels_and_values_are_rendered_as_by_the_client(*, text: str, rows: list[Row], openmetrics: bool) -> None:
    families: Families = [
        (metric(MetricType.COUNTER, "gputally_some_total", "b", "a", text=text), rows),
        (metric(MetricType.GAUGE, "gputally_other", "b", "a", text=text), rows),
    ]

    assert render(families, openmetrics=openmetrics) == rendered(families, openmetrics=openmetrics)


@st.composite
def histogram_rows(draw: st.DrawFn) -> HistogramRow:
    bounds = draw(st.lists(st.floats(-1e9, 1e9), max_size=5, unique=True).map(sorted))
    counts = draw(st.lists(st.integers(0, 2**60), min_size=len(bounds) + 1, max_size=len(bounds) + 1).map(sorted))
    buckets = tuple(zip([*map(str, bounds), "+Inf"], counts, strict=True))
    return HistogramRow(draw(label_sets), buckets, draw(st.floats()), draw(births))


@FORMATS
@given(rows=st.lists(histogram_rows()))
def test_any_histogram_is_rendered_as_by_the_client(*, rows: list[HistogramRow], openmetrics: bool) -> None:
    families: Families = [(metric(MetricType.HISTOGRAM, "gputally_some_seconds", "z", "a"), rows)]

    assert render(families, openmetrics=openmetrics) == rendered(families, openmetrics=openmetrics)

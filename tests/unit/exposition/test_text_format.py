from math import isnan
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, PlatformCollector, ProcessCollector, generate_latest

from gputally.catalog.metric import Columns, Metric, MetricType, Row
from gputally.exposition.process_metrics import registry_text
from gputally.exposition.text_format import _Series, numbers, render
from tests.golden.client import generate_openmetrics

TIERS: Metric[Any] = Metric(
    name="gputally_gpus", kind=MetricType.GAUGE, help="GPUs.", labels=("tier", "pool"), rows=lambda _: ()
)
BORN_US = 1_760_000_000_500_000
COUNTER: Metric[Any] = Metric(name="gputally_x_total", kind=MetricType.COUNTER, help="X.", rows=lambda _: ())


def test_labels_are_written_in_the_order_of_their_names() -> None:
    assert b'gputally_gpus{pool="a",tier="prod"} 8.0\n' in render([(TIERS, [Row(("prod", "a"), 8)])], openmetrics=False)


@pytest.mark.parametrize("openmetrics", [False, True])
def test_a_metric_without_rows_is_still_announced(*, openmetrics: bool) -> None:
    assert render([(TIERS, [])], openmetrics=openmetrics).startswith(
        b"# HELP gputally_gpus GPUs.\n# TYPE gputally_gpus gauge\n"
    )


def test_an_empty_catalog_is_a_valid_exposition() -> None:
    assert render([], openmetrics=False) == b""
    assert render([], openmetrics=True) == b"# EOF\n"


def test_rows_may_come_from_a_generator() -> None:
    rows = (Row(("prod", pool), 1) for pool in "ab")

    assert render([(TIERS, rows)], openmetrics=False).count(b"\ngputally_gpus{") == 2


@pytest.mark.parametrize("openmetrics", [False, True])
def test_columns_are_written_as_their_rows_are_also_when_series_join(*, openmetrics: bool) -> None:
    counter: Metric[Any] = Metric(
        name="gputally_y_total", kind=MetricType.COUNTER, help="Y.", labels=("a",), rows=lambda _: ()
    )
    labels = (("x",), ("y",))

    for columns in (
        Columns(labels, [1, 2.5], [BORN_US, None]),
        Columns(labels, [2, 3], [BORN_US, None]),
        Columns((*labels, ("z",)), [2, 3, 4], [BORN_US, None, BORN_US]),
        Columns((), []),
    ):
        assert render([(counter, columns)], openmetrics=openmetrics) == render(
            [(counter, list(columns))], openmetrics=openmetrics
        )


def test_only_openmetrics_says_when_a_counter_began() -> None:
    scrape = [(COUNTER, [Row((), 5, BORN_US)])]

    assert b"_created" not in render(scrape, openmetrics=False)
    assert b"gputally_x_total 5.0\ngputally_x_created 1.7600000005e+09\n" in render(scrape, openmetrics=True)


def test_a_series_renders_alike_at_every_scrape() -> None:
    first, second = (render([(TIERS, [Row(("prod", "a"), 8)])], openmetrics=True) for _ in range(2))

    assert first == second


@pytest.mark.parametrize("openmetrics", [False, True])
def test_a_gauge_shows_each_change(*, openmetrics: bool) -> None:
    first: list[tuple[str, float]] = [("a", 1), ("b", 2)]
    unknown: list[tuple[str, float]] = [("a", float("nan"))]
    another: list[tuple[str, float]] = [("a", 1), ("b", 3)]
    other_pool: list[tuple[str, float]] = [("a", 1), ("c", 3)]
    for pools in (first, first, another, other_pool, other_pool[1:], [], [], first, unknown, unknown):
        text = render([(TIERS, [Row(("prod", pool), value) for pool, value in pools])], openmetrics=openmetrics)
        samples = [line for line in text.decode().splitlines() if not line.startswith("#")]
        assert samples == [
            f'gputally_gpus{{pool="{pool}",tier="prod"}} {"NaN" if isnan(value) else float(value)}'
            for pool, value in pools
        ]


@pytest.mark.parametrize("values", [(), ("prod",), ("prod", "a", "b")])
def test_a_row_that_does_not_fit_its_labels_is_refused(values: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="zip"):
        render([(TIERS, [Row(values, 1)])], openmetrics=False)


def test_a_value_that_utf8_cannot_carry_does_not_cost_the_scrape() -> None:
    assert b'{pool="?",tier="prod"}' in render([(TIERS, [Row(("prod", "\ud800"), 1)])], openmetrics=False)


def test_what_follows_the_catalog_stands_before_the_end() -> None:
    assert render([], openmetrics=True, more=b"up 1.0\n") == b"up 1.0\n# EOF\n"
    assert render([], openmetrics=False, more=b"up 1.0\n") == b"up 1.0\n"


def test_a_registry_is_written_as_the_client_writes_it_without_an_end() -> None:
    registry = CollectorRegistry()
    Gauge("gputally_self", "Something of ours.", registry=registry).set(3)
    PlatformCollector(registry)

    assert registry_text(registry, openmetrics=False) == generate_latest(registry)
    assert registry_text(registry, openmetrics=True) + b"# EOF\n" == generate_openmetrics(registry)


@pytest.mark.parametrize("openmetrics", [False, True])
def test_the_process_tells_its_memory(*, openmetrics: bool) -> None:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)

    assert b"\nprocess_resident_memory_bytes " in registry_text(registry, openmetrics=openmetrics)


def test_no_numbers_are_no_texts() -> None:
    assert numbers([]) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.0"),
        (-0.0, "-0.0"),
        (True, "1.0"),
        (0.1, "0.1"),
        (1e-4, "0.0001"),
        (1e-5, "1e-05"),
        (999_999.5, "999999.5"),
        (1_000_000, "1e+06"),
        (12_345_678.25, "1.234567825e+07"),
        (2**53 + 1, "9.007199254740992e+15"),
        (1e16, "1e+16"),
        (-1e6, "-1000000.0"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_a_number_is_written_as_go_writes_it(value: float, text: str) -> None:
    assert numbers([value]) == [text]


@example([1.0, float("nan")])
@example([1.0, float("inf")])
@given(st.lists(st.floats() | st.floats(-10, 2e6) | st.integers(-(10**20), 10**20)))
def test_many_numbers_are_written_as_each_alone(values: list[float]) -> None:
    assert numbers(values) == [numbers([value])[0] for value in values]


def test_memory_follows_what_is_exposed() -> None:
    series = _Series("gputally_gpus", ("pod",))
    for pod in range(1_000):
        series[(f"pod-{pod}",)]

    series.trim(used=1_000)
    assert len(series) == 1_000

    series.trim(used=10)
    assert len(series) == 0

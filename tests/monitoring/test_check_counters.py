"""Checks that counters are read through rate() or increase(), and gauges directly."""

import pytest

from monitoring.check import counters
from tests.monitoring.documents import FILE, KNOWN, answered, board, loaded, panel, target


def problems(expr: str, exempt: dict[tuple[str, str], str] | None = None) -> list[str]:
    found, _ = answered(loaded(board(panel(target(expr)))))
    return [str(each) for each in counters.problems(found, KNOWN, exempt or {})]


@pytest.mark.parametrize(
    ("expr", "series"),
    [
        ("sum(held_gpu_seconds_total)", "held_gpu_seconds_total"),
        ("held_gpu_seconds_total", "held_gpu_seconds_total"),
        ("delta(held_gpu_seconds_total[5m])", "held_gpu_seconds_total"),
        ("max_over_time(wait_seconds_count[5m])", "wait_seconds_count"),
        ("wait_seconds_bucket", "wait_seconds_bucket"),
        ("rate((sum(wait_seconds_sum))[1h:5m])", "wait_seconds_sum"),
    ],
)
def test_a_counter_read_directly_is_reported(expr: str, series: str) -> None:
    assert problems(expr) == [
        f'{FILE}: panel "Pods": {series} is a counter read as it is; put it into rate() or increase()'
    ]


def test_a_gauge_in_a_rate_is_reported() -> None:
    assert problems("rate(pods[5m])") == [
        f'{FILE}: panel "Pods": pods is no counter, but stands in rate(); use delta() or deriv()'
    ]


@pytest.mark.parametrize(
    "expr",
    [
        "sum(rate(held_gpu_seconds_total[5m]))",
        "increase(wait_seconds_bucket[5m])",
        "resets(held_gpu_seconds_total[5m])",
        "absent(held_gpu_seconds_total)",
        "deriv(pods[5m])",
        "delta(pods[5m])",
    ],
)
def test_correct_functions_have_no_problem(expr: str) -> None:
    assert problems(expr) == []


def test_an_exemption_applies_only_to_its_file_and_series() -> None:
    assert problems("held_gpu_seconds_total", {(FILE, "held_gpu_seconds_total"): "why"}) == []
    assert problems("sum(rate(paid_cost_total[5m]))", {(FILE, "paid_cost_total"): "why"}) == [
        f"monitoring/allowed.py: BARE {FILE} paid_cost_total: nothing needs it any more; take it out"
    ]

"""The dimension of a query, derived from the names of its series."""

import pytest

from monitoring.check.dimension import named
from monitoring.check.syntax import parsed
from monitoring.check.trace import traced
from tests.monitoring.documents import KNOWN


def measured(expr: str) -> str:
    found = traced(parsed(expr), KNOWN)
    assert not found.problems
    return str(found.dimension)


@pytest.mark.parametrize(
    ("expr", "dimension"),
    [
        ("pods", "count"),
        ("capacity_gpus", "gpus"),
        ("share_ratio", "ratio"),
        ("gpu_up", "state"),
        ("gpu_info", "info"),
        ("held_gpu_seconds_total", "gpu_seconds"),
        ("wait_seconds_sum", "seconds"),
        ("wait_seconds_count", "count"),
        ("rate(held_gpu_seconds_total[5m])", "gpus"),
        ("rate(energy_joules_total[5m])", "watts"),
        ("rate(paid_cost_total[5m])", "money/second"),
        ("rate(paid_cost_total[5m]) * 3600", "money/hour"),
        ("3600 * rate(paid_cost_total[5m])", "money/hour"),
        ("rate(wait_seconds_sum[5m])", "ratio"),
        ("rate(wait_seconds_count[5m])", "count/second"),
        ("increase(held_gpu_seconds_total[1h])", "gpu_seconds"),
        ("increase(held_gpu_seconds_total[1h]) / 3600", "gpu_hours"),
        ("increase(energy_joules_total[1h]) / (60 * 60)", "watt_hours"),
        ("increase(held_gpu_seconds_total[$__range]) / $__range_s", "gpus"),
        ("rate(held_gpu_seconds_total[$__rate_interval]) * $__interval_ms / 1000", "gpu_seconds"),
        ("rate(wait_seconds_sum[5m]) / rate(wait_seconds_count[5m])", "seconds"),
        ("sum(increase(paid_cost_total{currency='EUR'}[1d])) / (sum(held_gpu_seconds_total) / 3600)", "money/gpu_hour"),
        ("capacity_gpus / capacity_gpus", "ratio"),
        ("100 * share_ratio", "percent"),
        ("share_ratio * 0.01", "ratio"),
        ("1 - share_ratio", "ratio"),
        ("time() - oldest_timestamp_seconds", "seconds"),
        ("oldest_timestamp_seconds * 1000", "milliseconds since 1970"),
        ("max by (tier) (oldest_timestamp_seconds)", "timestamp_seconds"),
        ("oldest_timestamp_seconds + 60", "timestamp_seconds"),
        ("timestamp(pods)", "timestamp_seconds"),
        ("count(gpu_up == 0)", "count"),
        ("sum(gpu_up)", "count"),
        ("avg(gpu_up)", "ratio"),
        ("avg_over_time(gpu_up[1h])", "ratio"),
        ("sum_over_time(gpu_up[1h])", "count"),
        ("pods > bool 3", "state"),
        ("pods > 3", "count"),
        ("3 < pods", "count"),
        ("pods or vector(0)", "count"),
        ("max_over_time(capacity_gpus[1h])", "gpus"),
        ("max_over_time((time() - oldest_timestamp_seconds)[1h:5m])", "seconds"),
        ("histogram_quantile(0.9, sum by (le) (rate(wait_seconds_bucket[5m])))", "seconds"),
        ("topk(3, capacity_gpus)", "gpus"),
        ("deriv(capacity_gpus[1h]) * 3600", "gpu·second^-1 x 1/3600"),
        ("capacity_gpus * on () group_left () max(gpu_up)", "gpus"),
        ("changes(gpu_up[1h])", "count"),
        ("absent(gpu_up)", "state"),
        ("scalar(sum(capacity_gpus)) * 2", "gpus"),
        ("-capacity_gpus", "gpus"),
        ("pods unless on (tier) share_ratio", "count"),
        ("time() - oldest_timestamp_seconds > 300 or gpu_up == 0", "state"),
    ],
)  # fmt: skip
def test_the_dimension_is_derived_from_names_and_arithmetic(expr: str, dimension: str) -> None:
    expected = named(dimension) if "·" not in dimension else None

    assert measured(expr) == str(expected or dimension)


@pytest.mark.parametrize(
    ("expr", "problem"),
    [
        ("pods + on (tier) share_ratio", "adds ratio to count; only the same dimension adds up"),
        ("pods - on (tier) share_ratio", "subtracts ratio from count; only the same dimension can be subtracted"),
        ("time() - oldest_timestamp_seconds - time()", "subtracts timestamp_seconds from seconds"),
        ("pods > on (tier) share_ratio", "`>` between count and ratio; both sides must measure the same"),
        ("sum(pods) or sum(share_ratio)", "`or` between count and ratio; both sides must measure the same"),
        ("sum(oldest_timestamp_seconds)", "sum adds up moments; take their max or min"),
        ("histogram_quantile(0.9, label_replace(pods, 'le', '1', '', ''))", "of what is no histogram"),
        ("ln(pods)", "ln(): its dimension is not known; add it to monitoring/check/call.py"),
        ("sum by (tier) (rate(paid_cost_total[5m]))", "sum mixes currencies; keep the label currency in `by (...)`"),
        ("max(rate(paid_cost_total[5m]))", "max mixes currencies; keep the label currency in `by (...)`"),
        ("rate(paid_cost_total[5m]) / on (tier) share_ratio", "`/` mixes currencies; match `on (currency, ...)`"),
    ],
)
def test_incompatible_dimensions_are_reported(expr: str, problem: str) -> None:
    assert problem in "\n".join(traced(parsed(expr), KNOWN).problems)


@pytest.mark.parametrize(
    "expr",
    [
        'sum by (tier) (rate(paid_cost_total{currency="EUR"}[5m]))',
        "count by (tier) (rate(paid_cost_total[5m]) > 0)",
        "avg by (tier) (rate(paid_cost_total[5m]) / rate(paid_cost_total[5m]))",
        "pods and on (tier) rate(paid_cost_total[5m])",
        "topk(3, sum by (tier, currency) (rate(paid_cost_total[5m])))",
    ],
)
def test_the_currency_may_be_dropped_if_currencies_are_not_mixed(expr: str) -> None:
    assert not traced(parsed(expr), KNOWN).problems

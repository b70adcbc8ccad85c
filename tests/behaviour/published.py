"""Compares the exported counters with the expected values."""

from fractions import Fraction
from typing import Final

import pytest

from tests.behaviour.product import Product, Samples, total
from tests.behaviour.recorder import Bill

WAITS: Final = {
    "pending": ("gputally_pending_gpu_seconds_total", "waits", "quantity"),
    "pending_cost": ("gputally_pending_cost_total", "waits", "quantity"),
    "uncreated": ("gputally_uncreated_gpu_seconds_total", "uncreated_waits", "pods * quantity"),
    "uncreated_cost": ("gputally_uncreated_cost_total", "uncreated_waits", "pods * quantity"),
}
"""The metric, the table and the µGPU of each counter of waits."""
WAITS_SQL: Final = """
SELECT {quantity} * (to_us - from_us), ifnull(p.per_gpu_hour, '0')
FROM {table} w LEFT JOIN prices p ON p.price_key = w.price_key
"""
Shown = dict[tuple[str, str, str, str], float]
"""Values by `time` or `cost`, tier, tenant and state."""


def overcount_over(bill: Bill, samples: Samples) -> float:
    """The counters' overcount (GPU-seconds) over `bill`. Fails if it differs from the exported overcount,
    or if any counter is below `bill`.
    """
    overcount = total(samples, "gputally_overcount_gpu_seconds", counter="allocated")
    exact = sum(bill.time.values()) / 10**12
    assert total(samples, "gputally_allocated_gpu_seconds_total") == pytest.approx(exact + overcount, abs=1e-6)
    shown = published(samples)
    behind = {group: shown[group] for group, value in exported(bill).items() if shown[group] < value - 1e-9}
    assert behind == {}
    return overcount


def published(samples: Samples) -> Shown:
    """GPU-seconds and cost as exported, without groups that are 0."""
    names = {"gputally_allocated_gpu_seconds_total": "time", "gputally_allocated_cost_total": "cost"}
    found: Shown = {}
    for (name, labels), value in samples.items():
        if name in names and value:
            by_name = dict(labels)
            group = names[name], by_name["tier"], by_name["tenant"], by_name["state"]
            found[group] = found.get(group, 0.0) + value  # sums all GPU models
    return found


def exported(truth: Bill) -> Shown:
    """The truth as floats, as exported."""
    time = {("time", *group): gpu_time / 10**12 for group, gpu_time in truth.time.items()}
    cost = {("cost", *group): float(cost / 3600 / 10**12) for group, cost in truth.cost.items()}
    return time | cost


def differences(samples: Samples) -> set[float]:
    """All reconciliation differences, of GPU-seconds and of costs."""
    return {value for (name, _), value in samples.items() if name.startswith("gputally_reconciliation_difference_")}


def surplus(samples: Samples, product: Product, counter: str) -> float:
    """By how much the counters of waits exceed the waits in the ledger, all of which must have ended."""
    metric, table, quantity = WAITS[counter]
    amount = Fraction(0)
    for lasted, price in product.query(WAITS_SQL.format(table=table, quantity=quantity)):
        amount += Fraction(lasted, 10**12) * (Fraction(price) / 3600 if metric.endswith("_cost_total") else 1)
    return float(Fraction(total(samples, metric)) - amount)

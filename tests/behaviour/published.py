"""What the counters show, against what they ought to."""

import pytest

from tests.behaviour.product import Samples, total
from tests.behaviour.recorder import Bill

Shown = dict[tuple[str, str, str, str], float]
"""By `time` or `cost`, tier, tenant and state."""


def ahead_of(bill: Bill, samples: Samples) -> float:
    """By how many GPU-seconds the counters are ahead of `bill`: as many as they say, and none is behind it."""
    ahead = total(samples, "gputally_overcount_gpu_seconds", counter="allocated")
    exact = sum(bill.time.values()) / 10**12
    assert total(samples, "gputally_allocated_gpu_seconds_total") == pytest.approx(exact + ahead, abs=1e-6)
    shown = published(samples)
    behind = {group: shown[group] for group, value in exported(bill).items() if shown[group] < value - 1e-9}
    assert behind == {}
    return ahead


def published(samples: Samples) -> Shown:
    """GPU-seconds and cost as exported; groups that never had any are exported as 0 and left out here."""
    names = {"gputally_allocated_gpu_seconds_total": "time", "gputally_allocated_cost_total": "cost"}
    found: Shown = {}
    for (name, labels), value in samples.items():
        if name in names and value:
            given = dict(labels)
            group = names[name], given["tier"], given["tenant"], given["state"]
            found[group] = found.get(group, 0.0) + value  # of all models
    return found


def exported(truth: Bill) -> Shown:
    """The truth as a float would show it."""
    time = {("time", *group): gpu_time / 10**12 for group, gpu_time in truth.time.items()}
    cost = {("cost", *group): float(cost / 3600 / 10**12) for group, cost in truth.cost.items()}
    return time | cost


def differences(samples: Samples) -> set[float]:
    return {value for (name, _), value in samples.items() if name == "gputally_reconciliation_difference_gpu_seconds"}

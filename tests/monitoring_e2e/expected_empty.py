"""The dashboard queries without data in the simulated day, with reasons: by dashboard, panel and query letter."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from hack.pictures.variables import Window

Key = tuple[str, str, str]

_ALWAYS: Final[Mapping[Key, str]] = {
    ("pending", "Oldest inference pod", "A"): "no inference pod is pending at the end",
    **dict.fromkeys((("pending", "Preemptions under way", each) for each in "ABC"), "victims stop within seconds"),
    **dict.fromkeys((("pending", "Pods not created, by reason", each) for each in "AB"), "no pod is refused"),
    **dict.fromkeys((("pending", "Wait time of pods not created", each) for each in "AB"), "no pod is refused"),
    **dict.fromkeys((("pending", "Gangs that wait for their pods", each) for each in "ABCDE"), "there are no gangs"),
    ("tiers", "GPU-hours and cost by tier", "E"): "there are no gangs",
    ("tenants", "Tenants", "B"): "nothing happened in the period before the scenario",
    ("tenants", "Unobserved", "A"): "every end of a pod is observed",
    ("tenants", "Unpriced", "A"): "the price book has a price for all GPUs",
}
_BUDGET_PANELS: Final = {
    "Budgets in money": "ABCDEFGH",
    "Budgets in GPU-hours": "ABCDEFGH",
    "Spent share of budgets": "AB",
    "Forecast share of budgets": "AB",
}
_JOBS_PANELS: Final = {
    "GPU-hours": "A",
    "Succeeded": "A",
    "Failed": "A",
    "Preempted": "A",
    "GPU-hours by outcome": "A",
    "GPU-hours by tier and outcome": "A",
    "GPU-hours by end of jobs": "A",
    "GPU-hours by tenant": "ABCDEFG",
    "Jobs ended by preemptions": "A",
    "Top 10 tenants by GPU-hours that did not succeed": "A",
}
_PREEMPTION_PANELS: Final = {
    "Overdue checkpoints by tenant": "A",
    "Overdue checkpoints now": "A",
    "Work at risk now, by tenant": "C",
    "Share in the period before": "A",
    "Stalled GPU-hours": "A",
    "Beyond the grace period": "A",
    "Lost GPU-hours by source of the checkpoint time": "BCD",
    "Jobs ended early": "A",
    "Repeat victims": "A",
    "Time until the victim is replaced, if within an hour": "ABC",
}
_POLICY_PANELS: Final = {
    "Violated disruption budgets": "A",
    "GPU quotas and physical GPUs": "A",
    "GPU quotas by tenant and tier": "ABCD",
}
_HOURLY_PANELS: Final = {
    ("preemption", "Disrupted pods by cause"): "A",
    ("preemption", "Cost of lost work per day by tenant"): "A",
    ("preemption", "Unused GPU-hours in the hour after a preemption"): "A",
    ("pending", "Demand over capacity, all tiers and tenants"): "B",
    ("fleet", "Nodes in the time range"): "ABCD",
    ("tenants", "Cost per day by tenant"): "A",
    ("tenants", "Top 50 jobs by GPU-hours"): "AB",
}
HOURLY: Final = {(*panel, letter) for panel, letters in _HOURLY_PANELS.items() for letter in letters}
"""Queries that need a moment of each hour, the full one or one of Prometheus's choice: the scenario is shorter."""
_SPLIT: Final = "GPU-hours and cost by day and by night"
_PIECE_S: Final = 300


def expected_empty(window: Window) -> Mapping[Key, str]:
    """The expected empty queries for that window."""
    budgets = _all_of("tenants", _BUDGET_PANELS, "no budgets are configured")
    jobs = _all_of("jobs", _JOBS_PANELS, "no Job ends in the scenario")
    preemption = _all_of(
        "preemption",
        _PREEMPTION_PANELS,
        "no pod is in a group or states a checkpoint, all stop in time, and victims still wait",
    )
    policy = _all_of("preemption", _POLICY_PANELS, "neither disruption budgets nor quotas are watched")
    return {**_ALWAYS, **budgets, **jobs, **preemption, **policy, **_by_the_clock(window)}


def _all_of(board: str, panels: Mapping[str, str], reason: str) -> Mapping[Key, str]:
    """All queries of these panels, whose letters are given."""
    return {(board, panel, letter): reason for panel, letters in panels.items() for letter in letters}


def _by_the_clock(window: Window) -> Mapping[Key, str]:
    """The scenario lasts some minutes, so it is usually only by day or only by night."""
    ends = range(-int(-window.start // _PIECE_S) * _PIECE_S, int(window.end) + 1, _PIECE_S)
    hours = {_is_day(each) for each in ends}
    missing = [letter for day, letters in ((True, "AC"), (False, "BD")) if day not in hours for letter in letters]
    return {("tiers", _SPLIT, letter): "the scenario ran at another time of day" for letter in missing}


def _is_day(instant: float) -> bool:
    moment = datetime.fromtimestamp(instant, UTC)
    return moment.weekday() < 5 and 8 <= moment.hour < 18

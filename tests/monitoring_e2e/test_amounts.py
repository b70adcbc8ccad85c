"""Compares dashboard values with the ledger, the API and the scripted GPUs."""

import logging

import pytest

from hack.pictures.variables import Window
from tests.behaviour.product import PRICE
from tests.monitoring_e2e.day import Day
from tests.monitoring_e2e.deviation import SLACK_S, deviations, overcount_at_end
from tests.monitoring_e2e.ledger import sums
from tests.monitoring_e2e.panels import Boards

pytestmark = pytest.mark.e2e
logger = logging.getLogger(__name__)

HOUR_S = 3600
BY = [("tiers", "GPU-hours and cost by tier", "tier"), ("tenants", "Tenants", "tenant")]


@pytest.fixture(params=["small", "whole"])
def shown_time(request: pytest.FixtureRequest, day: Day) -> Window:
    """The time with 8 GPUs, and the whole day with its two replacements of the aggregator."""
    window: Window = getattr(day, request.param)
    return window


@pytest.mark.parametrize(("board", "panel", "label"), BY)
def test_gpu_hours_equal_the_ledger(
    board: str, panel: str, label: str, shown_time: Window, day: Day, dashboards: Boards
) -> None:
    hours = dashboards.values(day.prometheus, board, panel, shown_time, column="GPU-hours", by=(label,))
    in_ledger = sums(day.ledger.segments(shown_time.start, shown_time.end), label)

    shown = {name: value * HOUR_S for (name,), value in hours.items()}
    assert {name for name, value in shown.items() if value} == in_ledger.keys()
    assert (
        deviations(shown, in_ledger, what="GPU-seconds", overcount=overcount_at_end(day.prometheus, shown_time)) == []
    )


@pytest.mark.parametrize(("board", "panel", "label"), BY)
def test_costs_equal_the_ledger(
    board: str, panel: str, label: str, shown_time: Window, day: Day, dashboards: Boards
) -> None:
    costs = dashboards.values(day.prometheus, board, panel, shown_time, column="Cost", by=(label, "currency"))
    in_ledger = sums(day.ledger.segments(shown_time.start, shown_time.end), label)

    per_second = float(PRICE) / HOUR_S
    assert {currency for (_, currency), cost in costs.items() if cost} == {"USD"}
    assert sum(each.cost for each in in_ledger.values()) == pytest.approx(
        sum(each.gpu_seconds for each in in_ledger.values()) * per_second
    )
    in_gpu_seconds = {name: cost / per_second for (name, _), cost in costs.items()}
    assert (
        deviations(in_gpu_seconds, in_ledger, what="cost", overcount=overcount_at_end(day.prometheus, shown_time)) == []
    )


def test_capacity_states_add_up_to_all_gpus_at_every_moment(day: Day, dashboards: Boards) -> None:
    frame = dashboards.ask(day.prometheus, "fleet", "GPUs by state", day.small)

    sums_by_time: dict[float, float] = {}
    for series in frame.series:
        for moment, value in series.points:
            sums_by_time[moment] = sums_by_time.get(moment, 0) + value
    assert len(sums_by_time) > 100
    assert set(sums_by_time.values()) == {8}


def test_preemptions_are_counted_and_named(day: Day, dashboards: Boards) -> None:
    slack = SLACK_S / day.small.seconds  # the mean rate is extrapolated to both edges
    taken = {"inference-critical": {"training-low": 5, "training-standard": 1}}
    matrix = {(by, victim): count for by, victims in taken.items() for victim, count in victims.items()}

    for panel, column in (("Preemptions", "Preemptions"), ("Preempted GPUs", "Preempted GPUs")):
        [total] = dashboards.values(day.prometheus, "tiers", panel, day.small).values()
        assert total == pytest.approx(6, rel=slack)
        shown = dashboards.values(
            day.prometheus,
            "tiers",
            "Preemptions by preemptor and victim",
            day.small,
            column=column,
            by=("preemptor_tier", "victim_tier"),
        )
        assert shown == {pair: pytest.approx(count, rel=slack) for pair, count in matrix.items()}
    assert day.ledger.preemptions() == day.ledger.gpus_taken() == matrix


def test_pending_pods_equal_those_in_the_api(day: Day, dashboards: Boards) -> None:
    window = Window(day.began, day.waiting_at, scrape=day.small.scrape)

    def shown(column: str) -> dict[tuple[str, ...], float]:
        return dashboards.values(
            day.prometheus, "pending", "Pending pods by tier and tenant", window, column=column, by=("tier", "tenant")
        )

    assert shown("Pods") == {group: each.pods for group, each in day.waiting.items()}
    assert shown("GPUs") == {group: each.gpus for group, each in day.waiting.items()}
    assert shown("Oldest") == {group: day.waiting_at - each.since for group, each in day.waiting.items()}
    totals = {
        "Pending pods": sum(each.pods for each in day.waiting.values()),
        "Requested GPUs": sum(each.gpus for each in day.waiting.values()),
        "Oldest inference pod": day.waiting_at
        - min(each.since for (tier, _), each in day.waiting.items() if tier.startswith("inference")),
        "Free GPUs": 0,
    }
    assert {name: dashboards.values(day.prometheus, "pending", name, window) for name in totals} == {
        name: {(): value} for name, value in totals.items()
    }


def test_used_and_idle_time_equal_the_integral_of_the_script(shown_time: Window, day: Day, dashboards: Boards) -> None:
    """The agent polls assignments every second, and API times are whole seconds: up to 2 s per start and end.

    Usage is at most 3 s old: it is read, pulled and scraped once a second.
    """
    until_us = round(shown_time.end * 1e6)
    uses = [gpu.use(day.pods_on(node), until_us=until_us) for node, gpu in day.scripts.items()]
    scripted = {
        "Used": sum(each.busy for each in uses) / HOUR_S,
        "Idle cost": sum(each.held - each.busy for each in uses) / HOUR_S * float(PRICE),
    }
    changes = sum(2 * len(day.pods_on(node)) - 1 for node in day.scripts)
    slack_s = 3 * len(day.scripts) + 2 * changes

    for column, due in scripted.items():
        labels = ("tenant", "currency") if "cost" in column else ("tenant",)
        shown = dashboards.values(day.prometheus, "tenants", "Tenants", shown_time, column=column, by=labels)
        unit = float(PRICE) if "cost" in column else 1
        off_s = (sum(shown.values()) - due) / unit * HOUR_S
        logger.info("%s: off by %+.3f of %.3f GPU-s", column, off_s, due / unit * HOUR_S)
        assert abs(off_s) <= slack_s

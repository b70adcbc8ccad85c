"""What dashboards say of who had what, against the ledger, the API and the script of the GPUs."""

import logging

import pytest

from hack.pictures.variables import Window
from tests.behaviour.product import PRICE
from tests.monitoring_e2e.day import Day
from tests.monitoring_e2e.deviation import SLACK_S, ahead, beyond
from tests.monitoring_e2e.ledger import sums
from tests.monitoring_e2e.panels import Boards

pytestmark = pytest.mark.e2e
logger = logging.getLogger(__name__)

HOUR_S = 3600
BY = [("tiers", "GPU-hours and cost by tier", "tier"), ("tenants", "Tenants", "tenant")]


@pytest.fixture(params=["small", "whole"])
def shown_time(request: pytest.FixtureRequest, day: Day) -> Window:
    """While there were 8 GPUs, and the whole day with its two successions."""
    window: Window = getattr(day, request.param)
    return window


@pytest.mark.parametrize(("board", "panel", "label"), BY)
def test_gpu_hours_are_those_of_the_ledger(
    board: str, panel: str, label: str, shown_time: Window, day: Day, dashboards: Boards
) -> None:
    hours = dashboards.values(day.prometheus, board, panel, shown_time, column="GPU-hours", by=(label,))
    told = sums(day.ledger.segments(shown_time.start, shown_time.end), label)

    shown = {name: value * HOUR_S for (name,), value in hours.items()}
    assert {name for name, value in shown.items() if value} == told.keys()
    assert beyond(shown, told, what="GPU-seconds", ahead=ahead(day.prometheus, shown_time)) == []


@pytest.mark.parametrize(("board", "panel", "label"), BY)
def test_costs_are_those_of_the_ledger(
    board: str, panel: str, label: str, shown_time: Window, day: Day, dashboards: Boards
) -> None:
    costs = dashboards.values(day.prometheus, board, panel, shown_time, column="Cost", by=(label, "currency"))
    told = sums(day.ledger.segments(shown_time.start, shown_time.end), label)

    per_second = float(PRICE) / HOUR_S
    assert {currency for (_, currency), cost in costs.items() if cost} == {"USD"}
    assert sum(each.cost for each in told.values()) == pytest.approx(
        sum(each.gpu_seconds for each in told.values()) * per_second
    )
    in_gpu_seconds = {name: cost / per_second for (name, _), cost in costs.items()}
    assert beyond(in_gpu_seconds, told, what="cost", ahead=ahead(day.prometheus, shown_time)) == []


def test_the_states_of_capacity_add_up_to_the_gpus_at_every_moment(day: Day, dashboards: Boards) -> None:
    frame = dashboards.ask(day.prometheus, "fleet", "GPUs by state", day.small)

    sums_by_time: dict[float, float] = {}
    for series in frame.series:
        for moment, value in series.points:
            sums_by_time[moment] = sums_by_time.get(moment, 0) + value
    assert len(sums_by_time) > 100
    assert set(sums_by_time.values()) == {8}


def test_preemptions_are_counted_and_named(day: Day, dashboards: Boards) -> None:
    slack = SLACK_S / day.small.seconds  # the mean rate goes on up to both edges
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


def test_who_waits_is_who_waits_by_the_api(day: Day, dashboards: Boards) -> None:
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


def test_used_and_idle_time_are_what_the_script_integrates_to(shown_time: Window, day: Day, dashboards: Boards) -> None:
    """The agent looks every second who holds the GPU, and API times are whole seconds: 2 s for each coming and going.

    What the GPU did is 3 s old at most: read, pulled and scraped once a second.
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

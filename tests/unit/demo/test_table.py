"""The fleet at a glance."""

import io
from collections.abc import Mapping
from dataclasses import replace

from rich.console import Console

from gputally.accounting.totals.total import Total
from gputally.demo.table import WIDE, events, tenant_table, tier_table, totals_line
from gputally.model.units import COST_UNIT, GPU_HOUR
from tests.core.manifests import NodeForm, PodForm, preempted_event, us
from tests.core.replay import Replay
from tests.fakes.stream import BOOK

HEADS = ["GPUs", "now", "pending", "GPU-hours", "starting", "used", "cost", "EUR", "idle", "EUR", "preempted"]


def table(replay: Replay, *, width: int = WIDE, quotas: Mapping[str, int] | None = None) -> list[str]:
    """Both tables at one hour, as lines."""
    file = io.StringIO()
    console = Console(file=file, width=width)
    console.print(tier_table(replay.fleet, now_us=us(3600), width=width))
    console.print()
    console.print(tenant_table(replay.fleet, now_us=us(3600), width=width, quotas=quotas or {}))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_each_tier_and_tenant_has_a_line_of_what_it_has_waits_for_and_cost() -> None:
    fleet = Replay(book=BOOK)
    fleet.see(NodeForm(), at=0)
    fleet.see(PodForm(name="a", tier="high", gpus=2, node="n1", scheduled=0, started=1800), at=1800)
    fleet.see(PodForm(name="b", tier="low", created=60), at=1800)

    lines = table(fleet)

    assert [line.split() for line in lines] == [
        ["tier", *HEADS],
        ["high", "2", "0", "2.00", "1.00", "4.42", "0.00", "0"],
        ["low", "0", "1", "0.00", "0.00", "0.00", "0.00", "0"],
        [],
        ["tenant", *HEADS[:-1]],
        ["ml", "2", "1", "2.00", "1.00", "4.42", "0.00"],
    ]


def test_what_agents_measured_is_shown_as_the_used_share_and_what_the_rest_cost() -> None:
    fleet = Replay(book=BOOK)
    fleet.see(NodeForm(), at=0)
    fleet.see(PodForm(name="a", tier="high", gpus=2, node="n1", scheduled=0, started=1800), at=1800)
    totals = fleet.fleet.totals
    totals.count(Total.MEASURED, ("high", "ml", "A100"), GPU_HOUR, at_us=us(1800))
    totals.count(Total.USED, ("high", "ml", "A100"), GPU_HOUR * 3 // 4, at_us=us(1800))
    totals.count(Total.IDLE_COST, ("high", "ml", "A100", "EUR"), COST_UNIT // 2, at_us=us(1800))

    lines = table(fleet)

    assert lines[1].split() == ["high", "2", "0", "2.00", "1.00", "75%", "4.42", "0.50", "0"]
    assert lines[-1].split() == ["ml", "2", "0", "2.00", "1.00", "75%", "4.42", "0.50"]


def test_eighty_columns_are_enough() -> None:
    fleet = Replay(book=BOOK)
    fleet.see(NodeForm(), at=0)
    fleet.see(PodForm(name="a", tier="inference-critical", gpus=2, node="n1", scheduled=0, started=1800), at=1800)

    lines = table(fleet, width=80)

    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["tier", "GPUs", "pending", "GPU-h", "used", "cost", "EUR", "idle", "EUR", "preempted"]
    assert lines[1].split() == ["inference-critical", "2", "0", "2.00", "4.42", "0.00", "0"]


def test_tenants_show_the_quotas_of_their_namespaces() -> None:
    fleet = Replay(book=BOOK)
    fleet.see(NodeForm(), at=0)
    fleet.see(PodForm(name="a", gpus=2, node="n1", scheduled=0, started=1800), at=1800)

    lines = table(fleet, quotas={"ml": 16, "empty": 4})

    assert lines[-2].split()[-1] == "quota"
    assert lines[-1].split()[-1] == "16"


def test_the_fleet_is_summed_in_a_line() -> None:
    fleet = Replay(book=BOOK)
    fleet.see(NodeForm(), at=0)
    fleet.see(PodForm(name="a", gpus=2, node="n1", scheduled=0, started=1800), PodForm(name="b", created=9), at=1800)
    fleet.scrape(1800)

    assert totals_line(fleet.fleet) == "8 GPUs: 2 allocated, 6 free; 1 pod waits; allocated GPUs cost 4.42 EUR/h"


def test_the_latest_events_come_first() -> None:
    fleet = Replay()
    fleet.see(NodeForm(), at=0)
    running = PodForm(name="train", uid="uid-train", tier="low", gpus=2, node="n1", scheduled=0, started=10)
    preemptor = PodForm(name="api", tier="high", created=950)
    fleet.see(running, preemptor, PodForm(name="late", created=900), at=960)
    fleet.see(replace(running, deleted=1000, marked=1000), at=1001)
    fleet.see_event(preempted_event(running, by=preemptor), at=1001)

    shown = [
        event.plain
        for event in events(fleet.fleet, fleet.fleet.disrupted.preemptions.known.values(), now_us=us(1500), most=3)
    ]

    assert shown == [
        "00:16:40 high took 2 GPUs: 2 of low (ml/train)",
        "00:15:50 high waits for 1 GPU, 9 min: ml/api",
        "00:15:00 none waits for 1 GPU, 10 min: ml/late",
    ]


def test_the_preemptions_of_one_second_are_one_event() -> None:
    fleet = Replay()
    fleet.see(NodeForm(), at=0)
    low = [
        PodForm(name=f"train-{n}", uid=f"uid-{n}", tier="low", gpus=n, node="n1", scheduled=0, started=9)
        for n in (1, 2)
    ]
    other = PodForm(name="note", uid="uid-note", tier="mid", gpus=1, node="n1", scheduled=0, started=9)
    preemptor = PodForm(name="api", tier="high", created=950)
    fleet.see(*low, other, preemptor, at=960)
    for victim in (*low, other):
        fleet.see(replace(victim, deleted=1000, marked=1000), at=1001)
        fleet.see_event(preempted_event(victim, by=preemptor), at=1001)

    found = events(fleet.fleet, fleet.fleet.disrupted.preemptions.known.values(), now_us=us(1500), most=1)

    assert [event.plain for event in found] == ["00:16:40 high took 4 GPUs: 3 of low, 1 of mid (3 pods)"]

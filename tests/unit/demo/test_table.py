"""The fleet at a glance."""

from gputally.accounting.totals.totals import Total
from gputally.demo.table import table
from gputally.model.units import COST_UNIT, GPU_HOUR
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay
from tests.fakes.stream import BOOK

HEADS = ["GPUs", "now", "pending", "GPU-hours", "starting", "used", "cost", "EUR", "idle", "EUR", "preempted"]


def test_each_tier_and_tenant_has_a_line_of_what_it_has_waits_for_and_cost() -> None:
    fleet = Replay(book=BOOK)
    fleet.see(NodeForm(), at=0)
    fleet.see(PodForm(name="a", tier="high", gpus=2, node="n1", scheduled=0, started=1800), at=1800)
    fleet.see(PodForm(name="b", tier="low", created=60), at=1800)

    lines = table(fleet.fleet, now_us=us(3600)).splitlines()

    assert [line.split() for line in lines] == [
        ["tier", *HEADS],
        ["high", "2", "0", "2.00", "1.00", "4.42", "0.00", "0"],
        ["low", "0", "1", "0.00", "0.00", "0.00", "0.00", "0"],
        [],
        ["tenant", *HEADS],
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

    lines = table(fleet.fleet, now_us=us(3600)).splitlines()

    assert lines[1].split() == ["high", "2", "0", "2.00", "1.00", "75%", "4.42", "0.50", "0"]
    assert lines[-1].split() == ["ml", "2", "0", "2.00", "1.00", "75%", "4.42", "0.50"]

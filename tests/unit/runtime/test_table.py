"""The fleet at a glance."""

from gputally.runtime.table import table
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay
from tests.fakes.stream import BOOK


def test_each_tier_and_tenant_has_a_line_of_what_it_has_waits_for_and_cost() -> None:
    fleet = Replay(book=BOOK)
    fleet.see(NodeForm(), at=0)
    fleet.see(PodForm(name="a", tier="high", gpus=2, node="n1", scheduled=0, started=1800), at=1800)
    fleet.see(PodForm(name="b", tier="low", created=60), at=1800)

    lines = table(fleet.fleet, now_us=us(3600)).splitlines()

    assert [line.split() for line in lines] == [
        ["tier", "GPUs", "now", "pending", "GPU-hours", "starting", "cost", "EUR", "preempted"],
        ["high", "2", "0", "2.00", "1.00", "4.42", "0"],
        ["low", "0", "1", "0.00", "0.00", "0.00", "0"],
        [],
        ["tenant", "GPUs", "now", "pending", "GPU-hours", "starting", "cost", "EUR", "preempted"],
        ["ml", "2", "1", "2.00", "1.00", "4.42"],
    ]

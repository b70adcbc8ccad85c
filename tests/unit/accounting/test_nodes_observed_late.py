"""A pod belongs to the node that joined in the second in which it was bound, whichever is observed first, and when."""

from dataclasses import replace
from fractions import Fraction

import pytest

from gputally.accounting.facts.release import NodeLife
from gputally.accounting.nodes.lineage import Lineage
from gputally.accounting.nodes.nodes import Nodes
from gputally.accounting.totals.total import Total
from tests.core.manifests import NodeForm, PodForm
from tests.core.replay import Form, Replay
from tests.unit.accounting.test_fleet import book

NODE = NodeForm(created=5, labels={"nvidia.com/gpu.product": "A100"})
POD = PodForm(created=1, node="n1", scheduled=5, accepted=5)


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("node_at", [4.9, 5, 8, 700])
@pytest.mark.parametrize("pod_at", [4.1, 4.7, 5, 5.3])
def test_a_pod_bound_in_the_second_its_node_joined_has_its_gpus_and_price(
    pod_at: float, node_at: float, *, is_restarted: bool
) -> None:
    """An observation by a clock that is slow by less than a second dates the binding before the node's creation."""
    replay = Replay(book=book((0, "2")))
    told: list[tuple[float, Form]] = [(pod_at, POD), (node_at, NODE)]
    for at, form in sorted(told, key=lambda each: each[0]):
        replay.see(form, at=at)
        replay.scrape(at + 0.01)
        if is_restarted:
            replay.restart()
    replay.scrape(1005)

    [(labels, gpu_seconds)] = replay.gpu_seconds(1005).items()
    assert labels[2] == "A100"
    assert 1000 <= gpu_seconds <= Fraction("1000.9")
    assert replay.gpu_seconds(1005, Total.UNPRICED) == {}
    capacity = replay.capacity(1005)
    assert (capacity["allocated"], capacity.get("overcommitted", 0)) == (gpu_seconds, 0)


def test_a_pod_bound_a_second_before_its_node_joined_was_on_another_node_of_that_name() -> None:
    replay = Replay()
    replay.see(PodForm(created=1, node="n1", scheduled=4, accepted=4), at=4.5)
    replay.see(NODE, at=6)
    replay.scrape(10)

    assert replay.gpu_seconds(10) == {("none", "ml", "unknown", "starting"): 1}


def test_a_pod_that_an_earlier_version_left_without_its_node_moves_to_it_after_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replay = Replay(book=book((0, "2")))
    with monkeypatch.context() as earlier:
        earlier.setattr(Lineage, "at", lambda *_: None)
        replay.see(POD, at=4.7)
        replay.see(NODE, at=8)
        replay.scrape(9)
        earlier.setattr(Nodes, "_stand_in_life", lambda *_: NodeLife())
        replay.see(replace(POD, version=2, started=6), at=10)
        replay.scrape(11)
    assert {labels[2] for labels in replay.gpu_seconds(11)} == {"unknown"}

    replay.restart()
    replay.scrape(105)

    assert replay.by_state(105) == {"starting": 1, "running": 99}
    assert {labels[2] for labels in replay.gpu_seconds(105)} == {"A100"}
    assert replay.capacity(105).get("overcommitted", 0) == 0

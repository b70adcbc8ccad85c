"""Nodes whose clocks are off: times that kubelets write are limited by those of the API server."""

from dataclasses import replace

import pytest

from gputally.accounting.fleet.snapshot import publish
from gputally.accounting.totals.total import Total
from gputally.model.allocation import Gap
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay

NODE = NodeForm(labels={"nvidia.com/gpu.product": "A100"})
BOUND = PodForm(created=9_990, node="n1", scheduled=10_000)


ACCEPTED = replace(BOUND, accepted=10_001)
RUNNING = replace(ACCEPTED, started=10_005)
FINISHED = replace(RUNNING, finished=13_000, phase="Succeeded")


def run(off: int, *, delay: int = 0) -> Replay:
    """A pod on a node whose clock is off, seen live from its binding on, its end `delay` later."""
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see(BOUND, at=10_000)
    replay.see(replace(ACCEPTED, clock=off), at=10_002)
    replay.see(replace(RUNNING, clock=off), at=10_006)
    replay.see(replace(FINISHED, clock=off), at=13_001 + delay)
    return replay


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_clocks_that_differ_by_no_more_than_two_seconds_pass_as_equal(off: int) -> None:
    replay = run(off)

    assert replay.spans() == [("starting", 10_000, 10_005 + off), ("running", 10_005 + off, 13_000 + off)]
    assert publish(replay.fleet, now_us=us(13_002), ledger={}).clock_skews == {}


@pytest.mark.parametrize("off", [-86_000, -3600, -5, 5, 3600, 86_000])
def test_a_node_that_is_off_is_set_right_by_when_its_kubelet_took_the_pod_up(off: int) -> None:
    """That was between the binding and the news of it: as long as that is what nobody knows of its end."""
    replay = run(off)

    assert replay.spans() == [("starting", 10_000, 10_004), ("running", 10_004, 12_999)]
    assert replay.fleet.pods.records["uid-a"].gap == Gap(from_us=us(12_999), to_us=us(13_001))
    assert replay.gpu_seconds(20_000, Total.UNOBSERVED) == {("none", "ml", "A100"): 2}


@pytest.mark.parametrize("off", [-3600, 3600])
def test_a_finish_told_late_is_set_right_as_well(off: int) -> None:
    assert run(off, delay=1000).spans() == run(off).spans()


@pytest.mark.parametrize("off", [-3600, 3600])
def test_what_is_told_again_later_moves_nothing(off: int) -> None:
    replay = run(off)
    before = replay.spans()
    for at in (14_000, 20_000):
        replay.see(replace(FINISHED, clock=off), at=at)

    assert replay.spans() == before


def test_a_pod_on_a_node_that_is_behind_is_billed_though_all_of_it_is_told_at_its_end() -> None:
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see(replace(FINISHED, clock=-3600), at=13_001, since=9_000)

    assert replay.spans() == [("starting", 10_000, 10_004), ("running", 10_004, 12_999)]


def test_a_finish_before_the_binding_by_a_clock_that_stepped_back_is_the_first_terminal_phase_seen() -> None:
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see(BOUND, at=10_000)
    replay.see(RUNNING, at=10_006)
    replay.see(replace(FINISHED, finished=9_400), at=13_001)

    assert replay.spans() == [("starting", 10_000, 10_005), ("running", 10_005, 13_001)]


def test_a_binding_that_a_kubelet_dates_before_the_pod_was_at_its_creation() -> None:
    """Of a pod that its creator bound the kubelet writes the condition, by its own clock."""
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see(replace(replace(RUNNING, clock=-3600), scheduled=6_400), at=10_006)

    assert replay.spans() == [("starting", 9_990, 9_994), ("running", 9_994, None)]


def test_nodes_that_are_off_are_shown_until_a_pod_shows_them_right() -> None:
    replay = run(-3600)
    assert publish(replay.fleet, now_us=us(13_002), ledger={}).clock_skews == {"n1": -3600 * 10**6}

    replay.see(replace(RUNNING, name="b", created=14_000, scheduled=14_000, accepted=14_001, started=14_002), at=14_003)
    assert publish(replay.fleet, now_us=us(14_004), ledger={}).clock_skews == {}


def test_a_pod_that_is_first_seen_as_it_is_deleted_shows_its_node_off_and_stays_in_no_index() -> None:
    replay = Replay()
    replay.see(NODE, at=1)
    replay.lose(replace(FINISHED, clock=3600), at=13_001)

    assert publish(replay.fleet, now_us=us(13_002), ledger={}).clock_skews == {"n1": 3600 * 10**6}
    index = replay.fleet.pods.index
    assert (index.on_node, index.in_namespace, index.pending, index.starting.oldest()) == ({}, {}, set(), {})


def test_of_many_nodes_that_are_off_the_worst_are_shown() -> None:
    replay = Replay()
    for number in range(60):
        node = f"n{number}"
        replay.see(replace(NODE, name=node), at=1)
        pod = replace(RUNNING, name=f"p{number}", node=node)
        replay.see(replace(pod, clock=-100 - number), at=10_006)

    shown = publish(replay.fleet, now_us=us(10_007), ledger={}).clock_skews
    assert len(shown) == 20
    assert set(shown) == {f"n{number}" for number in range(40, 60)}

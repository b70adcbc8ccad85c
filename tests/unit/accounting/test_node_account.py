from dataclasses import replace
from fractions import Fraction

import pytest

from gputally.accounting.fleet.snapshot import publish
from gputally.accounting.nodes import capacity_account
from gputally.accounting.totals.total import Total
from gputally.model.kube.kinds import Kind
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay

NODE = NodeForm(gpus=4)
POD = PodForm(node="n1", scheduled=10, gpus=3)


def differences(replay: Replay, at: float) -> dict[str, int]:
    return dict(publish(replay.fleet, now_us=us(at), ledger={}).differences)


def physical(replay: Replay, at: float) -> Fraction:
    return sum(replay.gpu_seconds(at, Total.PHYSICAL).values(), Fraction(0))


def test_the_capacity_of_a_node_is_divided_as_pods_come_and_go() -> None:
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see(POD, at=12)
    replay.lose(POD, at=30)

    assert replay.capacity(50) == {"allocated": 60, "free": 4 * 50 - 60}
    assert physical(replay, 50) == 200


def test_capacity_before_the_books_were_opened_does_not_count() -> None:
    replay = Replay(opened=20)
    replay.see(NODE, POD, at=21)

    assert replay.capacity(50) == {"allocated": 90, "free": 30}
    assert physical(replay, 50) == 120


def test_the_states_follow_the_node() -> None:
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see(replace(NODE, allocatable={"nvidia.com/gpu": 3}), at=10)
    replay.see(replace(NODE, cordoned=True), at=20)
    replay.see(replace(NODE, cordoned=True, ready="Unknown", ready_since=30), at=35)
    replay.lose(NODE, at=40)

    assert replay.capacity(99) == {"free": 40 + 30, "unhealthy": 10, "cordoned": 40, "unknown": 40}
    assert physical(replay, 99) == 160


def test_a_pod_keeps_its_gpus_on_a_node_that_is_lost_until_it_is_deleted() -> None:
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see(POD, at=12)
    replay.see(replace(NODE, ready="Unknown", ready_since=20), at=21)
    replay.lose(POD, at=40)

    assert replay.capacity(50) == {"allocated": 90, "free": 40 + 10, "unknown": 20 + 40}


def test_more_pods_than_gpus_are_overcommitted() -> None:
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see(POD, replace(POD, name="b"), at=12)

    assert replay.capacity(20) == {"allocated": 60, "overcommitted": 20, "free": 40}
    assert differences(replay, 20) == {"allocated": 0, "capacity": 0}


def test_a_node_whose_device_plugin_comes_later_has_no_gpus_until_then() -> None:
    replay = Replay()
    replay.see(replace(NODE, gpus=0), at=1)
    replay.see(NODE, at=30)

    assert replay.capacity(50) == {"free": 80}


def test_a_node_whose_device_plugin_comes_while_nobody_watched_has_gpus_from_then_on() -> None:
    replay = Replay()
    replay.see(replace(NODE, capacity={}), at=1)
    replay.flush()
    replay.restart()
    replay.see(NODE, at=30, since=1)

    assert replay.capacity(50) == {"free": 80}


def test_a_node_without_gpus_counts_as_none() -> None:
    replay = Replay()
    replay.see(replace(NODE, capacity={}), at=1)
    replay.scrape(10)

    assert replay.scrape(20).inventory.nodes == 0
    assert replay.true(Total.CAPACITY, 20) == {}


def test_a_restart_goes_on_where_the_books_ended() -> None:
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see(POD, at=12)
    replay.scrape(20)
    replay.restart()
    replay.see(NODE, POD, at=31)

    assert replay.capacity(50) == {"allocated": 120, "free": 200 - 120}
    assert differences(replay, 50) == {"allocated": 0, "capacity": 0}


def test_a_restart_keeps_the_capacity_of_pods_on_a_node_that_is_not_known() -> None:
    replay = Replay()
    replay.see(POD, at=12)
    replay.scrape(20)
    replay.restart()

    assert replay.capacity(50) == {"allocated": 120, "overcommitted": 120}
    assert differences(replay, 50) == {"allocated": 0, "capacity": 0}


def test_news_of_the_time_before_a_restart_moves_it_between_allocated_and_free() -> None:
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see(POD, at=12)
    replay.scrape(20)
    replay.restart()
    replay.see(replace(POD, phase="Succeeded", finished=15), at=30)
    replay.see(replace(POD, name="b", gpus=1, scheduled=18), at=31)

    assert replay.capacity(50) == {"allocated": 15 + 32, "free": 200 - 15 - 32}
    assert differences(replay, 50) == {"allocated": 0, "capacity": 0}


def test_news_of_the_time_before_a_restart_on_an_unknown_node_moves_nothing_to_free() -> None:
    replay = Replay()
    replay.see(POD, at=12)
    replay.scrape(20)
    replay.restart()
    replay.see(replace(POD, phase="Succeeded", finished=15), at=30)

    assert replay.capacity(50) == {"allocated": 15, "overcommitted": 15}


def test_a_long_history_is_settled_and_still_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity_account, "_FINALIZE_US", 100 * 1_000_000)
    replay = Replay()
    replay.see(NODE, at=1)
    for i in range(200):
        at = 10 + 10 * i
        pod = replace(POD, name=f"p{i}", uid=f"p{i}", created=at, scheduled=at, gpus=1 + i % 4)
        replay.see(pod, at=at)
        replay.see(replace(NODE, cordoned=i % 3 == 0), at=at + 2)
        replay.lose(pod, at=at + 5)
        replay.flush()
    account = replay.fleet.nodes.accounts["uid-n1"]

    assert account.finalized_us > us(1000)
    assert len(account.slices) < 100
    assert len(account._steps) < 100
    assert sum(replay.capacity(2100).values()) == physical(replay, 2100) == 4 * 2100
    assert replay.capacity(2100)["allocated"] == 5 * (1 + 2 + 3 + 4) * 50
    assert differences(replay, 2100) == {"allocated": 0, "capacity": 0}


def test_a_late_end_inside_settled_time_is_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity_account, "_WINDOW", 1)
    monkeypatch.setattr(capacity_account, "_FINALIZE_US", 5 * 1_000_000)
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see(POD, at=12)
    replay.see(replace(NODE, cordoned=True), at=40)
    replay.flush()
    replay.see(NODE, at=50)
    replay.flush()
    replay.see(replace(POD, phase="Succeeded", finished=20), at=60)

    assert replay.fleet.nodes.accounts["uid-n1"].finalized_us == us(45)
    assert replay.by_state(60) == {"starting": 30}
    assert replay.capacity(60)["allocated"] == 30
    assert differences(replay, 60) == {"allocated": 0, "capacity": 0}


def test_settling_stops_at_the_end_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity_account, "_WINDOW", 1)
    monkeypatch.setattr(capacity_account, "_FINALIZE_US", 1)
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see(POD, at=12)
    replay.relist(Kind.NODES, at=80, since=50)  # the node has vanished

    assert replay.by_state(90) == {"starting": 120}
    assert differences(replay, 90) == {"allocated": 0, "capacity": 0}


def test_a_node_that_vanished_while_nobody_watched_was_there_as_long_as_its_pods_are_known_to_have_been() -> None:
    replay = Replay()
    replay.see(NODE, at=1)
    ended = replace(POD, scheduled=100, gpus=1, phase="Succeeded", finished=110)
    replay.see(ended, at=111)
    replay.lose(ended, at=120)
    replay.relist(Kind.NODES, at=200, since=50)

    assert replay.capacity(300) == {"allocated": 10, "free": 4 * 110 - 10}
    assert differences(replay, 300) == {"allocated": 0, "capacity": 0}


def test_late_news_of_a_node_that_was_gone_before_the_restart_is_booked_under_its_own_model() -> None:
    node = replace(NODE, labels={"nvidia.com/gpu.product": "NVIDIA-H100", "karpenter.sh/nodepool": "train"})
    replay = Replay()
    replay.see(node, POD, at=12)
    replay.scrape(20)
    replay.lose(node, at=100)
    replay.scrape(110)
    replay.restart()
    replay.see(replace(POD, phase="Failed", finished=50), at=130)

    assert {labels[:2] for labels in replay.gpu_seconds(200, Total.CAPACITY)} == {("NVIDIA-H100", "train")}
    assert replay.capacity(200)["allocated"] == 3 * 40


def test_a_node_whose_end_is_told_late_was_there_when_its_last_pod_was_bound() -> None:
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see(POD, at=12)
    replay.lose(NODE, at=80, since=5)

    assert {labels[1] for labels in replay.gpu_seconds(90, Total.CAPACITY)} == {"none"}
    assert "overcommitted" not in replay.capacity(90)
    assert sum(series.b for _, series in replay.fleet.totals.truth(Total.ALLOCATED)) == 0
    assert differences(replay, 90) == {"allocated": 0, "capacity": 0}


def test_a_pod_stays_on_a_node_that_may_have_gone_before_it_was_bound_as_long_as_no_other_is_known() -> None:
    replay = Replay(opened=10)
    replay.see(replace(NODE, created=10), at=11)
    replay.see(replace(POD, created=10), at=11.5)
    replay.lose(replace(NODE, created=10), at=12, since=9)

    assert sum(series.b for _, series in replay.fleet.totals.truth(Total.ALLOCATED)) == 0
    assert {labels[1] for labels in replay.gpu_seconds(90, Total.CAPACITY)} <= {"none"}
    assert "overcommitted" not in replay.capacity(90)
    assert differences(replay, 90) == {"allocated": 0, "capacity": 0}

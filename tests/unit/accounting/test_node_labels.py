"""Labels of nodes that come late, vanish and return: the GPUs stay the same."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest

from gputally.accounting.totals.total import Total
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Bookmark
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay
from tests.unit.accounting.test_fleet import book

SHARED = {
    "nvidia.com/gpu.product": "A100-SHARED",
    "nvidia.com/gpu.count": "2",
    "nvidia.com/gpu.replicas": "4",
    "nvidia.com/gpu.memory": "81920",
}
BY_TWO = {"nvidia.com/gpu.count": "4", "nvidia.com/gpu.replicas": "2"}
BARE = NodeForm(gpus=8)
LABELLED = replace(BARE, labels=SHARED)
POD = PodForm(created=1, node="n1", scheduled=2, started=2, gpus=4)
HOUR = 3600
FAST = "feature.node.kubernetes.io/fast"
FAMILY = "cloud.google.com/machine-family"


def with_books() -> Replay:
    return Replay(book=book((0, "3600")))


def by_model(replay: Replay, at: float, total: Total = Total.ALLOCATED) -> dict[str, Fraction]:
    """GPU-seconds by GPU model."""
    place = 0 if total is Total.CAPACITY else 2
    found: dict[str, Fraction] = {}
    for labels, value in replay.gpu_seconds(at, total).items():
        found[labels[place]] = found.get(labels[place], Fraction(0)) + value
    return found


def watched(replay: Replay, at: float) -> None:
    """Nothing is told of nodes up to then."""
    replay.apply(Bookmark(kind=Kind.NODES, version="9", at_us=us(at), since_us=us(at)))


def relabelled(labels: Mapping[str, str]) -> NodeForm:
    return replace(BARE, labels=labels)


def test_labels_that_come_late_hold_since_the_birth_of_the_node() -> None:
    replay = with_books()
    replay.see(BARE, POD, at=2)
    assert replay.gpu_seconds(62) == {("none", "ml", "unknown", "running"): 240}
    assert replay.gpu_seconds(62, Total.UNPRICED) == {("none", "ml", "unknown"): 240}

    replay.see(LABELLED, at=62)

    assert replay.gpu_seconds(62) == {("none", "ml", "A100", "running"): 60}
    assert replay.gpu_seconds(62, Total.UNPRICED) == {}
    assert replay.money(62) == {("none", "ml", "A100", "running", "EUR"): 60}
    assert replay.capacity(62) == {"free": 64, "allocated": 60}
    assert by_model(replay, 62, Total.CAPACITY) == {"A100": 124}


def test_pods_that_ended_before_the_labels_came_are_amended_and_those_deleted_within_the_hour() -> None:
    replay = with_books()
    finished = replace(POD, name="b", phase="Succeeded", finished=22, version=2)
    deleted = replace(POD, name="c", version=2)
    replay.see(BARE, POD, at=2)
    replay.see(replace(POD, name="b"), replace(POD, name="c"), at=3)
    replay.see(finished, at=23)
    replay.lose(deleted, at=42)
    revision = replay.memory.saved()
    replay.flush()
    before = {uid: record.revision for uid, record in replay.memory.revisions.items()}
    replay.see(LABELLED, at=62)

    assert replay.gpu_seconds(62) == {("none", "ml", "A100", "running"): 60 + 20 + 40}
    assert replay.gpu_seconds(62, Total.UNPRICED) == {}
    for name in "abc":
        assert [segment.gpu_model for segment in replay.segments(name)] == ["A100"]
    assert all(replay.memory.revisions[uid].revision > known for uid, known in before.items())
    assert revision is not None


def test_a_pod_deleted_before_the_labels_is_amended_by_the_next_process_too() -> None:
    replay = Replay()
    replay.see(BARE, POD, at=2)
    replay.lose(POD, at=42)
    replay.flush()
    replay.restart()
    replay.see(LABELLED, at=62)

    assert replay.gpu_seconds(62) == {("none", "ml", "A100", "running"): 40}


def test_a_pod_deleted_more_than_an_hour_before_the_labels_stays_as_it_was() -> None:
    replay = Replay()
    replay.see(BARE, POD, at=2)
    replay.lose(POD, at=42)
    replay.fleet.advance(us(42 + HOUR + 700))
    replay.see(LABELLED, at=42 + HOUR + 701)

    assert replay.gpu_seconds(62) == {("none", "ml", "unknown", "running"): 160}


def test_what_was_told_of_a_label_first_is_not_amended_by_what_it_says_later() -> None:
    replay = Replay()
    replay.see(LABELLED, POD, at=2)
    replay.see(relabelled(SHARED | BY_TWO), at=62)

    assert replay.gpu_seconds(72) == {("none", "ml", "A100", "running"): 60 + 20}


def test_each_label_counts_by_itself() -> None:
    """The cloud tells of the model at once, discovery of replicas later."""
    replay = Replay()
    cloud = {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}
    replay.see(relabelled(cloud), POD, at=2)
    replay.see(relabelled(cloud | {"nvidia.com/gpu.replicas": "4"}), at=62)

    assert replay.gpu_seconds(62) == {("none", "ml", "nvidia-tesla-t4", "running"): 60}


@pytest.mark.parametrize("gap", [120, HOUR - 1])
def test_known_facts_outlive_the_absence_of_their_labels(gap: int) -> None:
    replay = with_books()
    replay.see(LABELLED, POD, at=2)
    replay.see(BARE, at=100)
    replay.see(LABELLED, at=100 + gap)

    assert replay.gpu_seconds(202 + gap) == {("none", "ml", "A100", "running"): 200 + gap}
    assert replay.gpu_seconds(202 + gap, Total.UNPRICED) == {}
    assert len(replay.segments()) == 1
    assert by_model(replay, 202 + gap, Total.CAPACITY) == {"A100": 2 * (202 + gap)}


def test_after_an_hour_the_absence_holds_from_then_on() -> None:
    replay = Replay()
    replay.see(LABELLED, POD, at=2)
    replay.see(BARE, at=100)
    watched(replay, 100 + HOUR + 4)
    late = replace(POD, name="late", created=100 + HOUR + 2, scheduled=100 + HOUR + 2, started=100 + HOUR + 2)
    replay.see(late, at=100 + HOUR + 6)

    assert by_model(replay, 100 + HOUR + 10) == {"A100": 98 + HOUR, "unknown": 4 * 10 + 4 * 8}


def test_an_absence_that_ends_after_more_than_an_hour_counts_from_its_observation() -> None:
    replay = Replay()
    replay.see(LABELLED, POD, at=2)
    replay.see(BARE, at=100)
    watched(replay, 100 + HOUR)
    replay.see(LABELLED, at=110 + HOUR)

    assert by_model(replay, 120 + HOUR) == {"A100": 98 + HOUR + 10, "unknown": 4 * 10}


def test_a_label_that_returns_with_another_value_counts_from_its_observation() -> None:
    replay = Replay()
    replay.see(LABELLED, POD, at=2)
    replay.see(BARE, at=100)
    replay.see(relabelled(SHARED | BY_TWO), at=202)

    assert replay.gpu_seconds(212) == {("none", "ml", "A100", "running"): 200 + 20}


def test_what_somebody_took_away_on_purpose_counts_at_once() -> None:
    pool = {"karpenter.sh/nodepool": "train"}
    replay = Replay()
    replay.see(relabelled(SHARED | pool), POD, at=2)
    replay.see(LABELLED, at=62)

    assert {segment.pool: segment.end_us for segment in replay.segments()} == {"train": us(62), "none": None}


@pytest.mark.parametrize("returns", [True, False])
def test_a_restart_while_labels_are_away_changes_nothing(*, returns: bool) -> None:
    replays = []
    for restarts in (False, True):
        replay = Replay()
        replay.see(LABELLED, POD, at=2)
        replay.see(BARE, at=100)
        replay.flush()
        if restarts:
            replay.restart()
        replay.relist(Kind.NODES, LABELLED if returns else BARE, at=105, since=100)
        watched(replay, 200 + HOUR)
        replays.append(by_model(replay, 300 + HOUR))

    assert replays[0] == replays[1]
    assert replays[1] == ({"A100": 298 + HOUR} if returns else {"A100": 98 + HOUR, "unknown": 4 * 200})


@pytest.mark.parametrize("returns", [True, False])
def test_labels_that_are_back_when_a_new_process_looks_were_away_for_as_long_as_nobody_knows(*, returns: bool) -> None:
    replay = Replay()
    replay.see(LABELLED, POD, at=2)
    replay.see(BARE, at=100)
    replay.flush()
    replay.restart()
    replay.see_namespace({"metadata": {"name": "other", "uid": "uid-other"}}, at=150 + HOUR)
    replay.relist(Kind.NODES, LABELLED if returns else BARE, at=150 + HOUR, since=100)

    expected = {"A100": 198 + HOUR} if returns else {"A100": 98 + HOUR, "unknown": 4 * 100}
    assert by_model(replay, 200 + HOUR) == expected


def test_while_slices_are_cut_anew_the_node_keeps_its_gpus() -> None:
    """GPU Feature Discovery tells a count of 0 then."""
    single = {"nvidia.com/mig.strategy": "single", "nvidia.com/gpu.count": "14", "nvidia.com/gpu.memory": "9728"}
    product = "NVIDIA-A100-SXM4-80GB-MIG-"
    invalid = {"nvidia.com/gpu.count": "0", "nvidia.com/gpu.memory": "0", "nvidia.com/gpu.replicas": "0"}
    node = NodeForm(gpus=14, labels=single | {"nvidia.com/gpu.product": f"{product}1g.10gb"})
    cutting = replace(node, gpus=0, labels=single | invalid | {"nvidia.com/gpu.product": f"{product}INVALID"})
    replay = Replay()
    replay.see(node, at=2)
    replay.see(cutting, at=50)

    assert sum(replay.capacity(100).values()) == 200
    assert by_model(replay, 100, Total.CAPACITY) == {"NVIDIA-A100-SXM4-80GB": 200}


def test_labels_that_come_and_go_leave_no_history() -> None:
    replay = Replay()
    replay.see(LABELLED, POD, at=2)
    for i in range(50):
        replay.see(BARE if i % 2 else LABELLED, at=10 + i)

    (record,) = (account.record for account in replay.fleet.nodes.accounts.values())
    assert len(record.facts) == 1
    assert len(replay.segments()) == 1


def test_after_a_restart_with_another_price_book_late_labels_are_priced_by_it() -> None:
    """What was posted unpriced was posted in ignorance."""
    replay = Replay(book=book((0, "3600")))
    replay.see(BARE, POD, at=2)
    replay.flush()
    replay.restart(book=book((0, "7200")))
    replay.see(LABELLED, at=62)

    assert replay.money(62) == {("none", "ml", "A100", "running", "EUR"): 120}
    assert replay.gpu_seconds(62, Total.UNPRICED) == {}


def test_the_order_in_which_pods_and_labels_are_told_changes_nothing() -> None:
    first, last = Replay(), Replay()
    for replay in (first, last):
        if replay is first:
            replay.see(POD, at=2)
        replay.see(relabelled({"nvidia.com/gpu.product": "A100"}), at=3)
        replay.see(LABELLED, at=20)
        replay.see(relabelled(SHARED | BY_TWO), at=40)
        if replay is last:
            replay.see(POD, at=50)

    assert last.segments() == first.segments()
    assert [segment.quantity for segment in last.segments()] == [10**6, 2 * 10**6]


def test_a_label_that_ceased_to_hold_says_nothing_of_a_node_that_was_gone_by_then() -> None:
    replay = Replay()
    replay.see(LABELLED, POD, at=2)
    replay.see(BARE, at=100)
    replay.relist(Kind.NODES, at=200 + HOUR, since=150)

    assert replay.gpu_seconds(300 + HOUR) == {("none", "ml", "A100", "running"): 148}


def test_a_label_that_somebody_took_away_does_not_return_with_the_end_of_the_node() -> None:
    """The node changed and went within hours in which nobody watched; its pod outlives it."""
    pool = {"karpenter.sh/nodepool": "train"}
    replay = Replay()
    replay.see(relabelled(SHARED | pool), POD, at=2)
    replay.see(LABELLED, at=62)
    replay.see(replace(LABELLED, cordoned=True), at=2 * HOUR, since=100)
    replay.lose(LABELLED, at=2 * HOUR, since=100)
    replay.see(replace(POD, phase="Succeeded", finished=50 + 2 * HOUR), at=60 + 2 * HOUR)

    ends = [(segment.pool, segment.end_us) for segment in replay.segments()]
    assert ends == [("train", us(62)), ("none", us(50 + 2 * HOUR))]


def test_a_label_whose_node_was_replaced_before_it_lapsed_holds_for_what_outlives_the_node() -> None:
    """Its successor, told of late, was born before the label had been away for an hour."""
    replay = Replay()
    replay.see(LABELLED, POD, at=2)
    replay.see(BARE, at=100)
    replay.see(replace(POD, finished=150 + HOUR, phase="Succeeded"), at=160 + HOUR)
    replay.lose(BARE, at=200 + HOUR)
    replay.see(replace(BARE, uid="uid-other", created=50 + HOUR), at=200 + HOUR)

    assert by_model(replay, 300 + HOUR) == {"A100": 148 + HOUR}


def test_a_label_lapses_also_for_a_pod_that_went_before_that_was_known() -> None:
    """Nobody watched for two hours; what went meanwhile is told before all that is told of nodes is."""
    replay = Replay()
    replay.see(LABELLED, POD, at=2)
    replay.see(BARE, at=100)
    replay.lose(replace(POD, phase="Succeeded", finished=150 + HOUR), at=2 * HOUR, since=200)
    watched(replay, 2 * HOUR)

    assert by_model(replay, 2 * HOUR) == {"A100": 98 + HOUR, "unknown": 4 * 50}

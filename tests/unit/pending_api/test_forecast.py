"""What would happen to pods that do not exist yet."""

from typing import Any

import pytest

from gputally.model.placement.advice import PriorityChoice
from gputally.model.placement.what_if_document import WhatIfDocument
from gputally.pending_api.forecasts.forecast import forecast
from gputally.pending_api.forecasts.manifest_pods import PlannedPods, plain_pod
from gputally.pending_api.pending_now import ALL, PendingNow, Viewer
from gputally.report_api.report_request import InvalidRequest
from tests.unit.pending_api.pending_world import holds, node, waits, world

CLASSES = [PriorityChoice("top", 9000), PriorityChoice("low", 1), PriorityChoice("quiet", 9000, may_preempt=False)]


def pods(gpus: int, number: int = 1, *, name: str = "", **spec: object) -> PlannedPods:
    container = {"resources": {"limits": {"nvidia.com/gpu": gpus} if gpus else {"cpu": "1"}}}
    document: dict[str, Any] = {"metadata": {"namespace": "ml"}, "spec": {"containers": [container], **spec}}
    return PlannedPods(name, plain_pod(document), number)


def cluster() -> PendingNow:
    """Four GPUs are held by two pods of a low priority, four are free."""
    low = {"tier": "low", "priority": 1}
    held = [holds("b", 2, on="g1", namespace="lab", **low), holds("c", 2, on="g1", **low)]  # type: ignore[arg-type] # its fields
    return world([node("g1", 4), node("g2", 4)], held, classes=CLASSES)


def asked(*planned: PlannedPods, viewer: Viewer = ALL, now: PendingNow | None = None) -> WhatIfDocument:
    return forecast(now or cluster(), planned, viewer)


def test_pods_that_fit_evict_nobody() -> None:
    found = asked(pods(2, 2))

    [one] = found.forecasts
    assert (one.bound, one.nodes, one.victims, one.reason) == (2, ["g2"], [], "")
    assert (found.lost_gpu_hours, found.lost_cost) == (0, "0")


def test_a_class_decides_whom_they_evict() -> None:
    top = asked(pods(4, 2, priorityClassName="top")).forecasts[0]
    quiet = asked(pods(4, 2, priorityClassName="quiet")).forecasts[0]

    assert (top.bound, sorted(str(each.pod) for each in top.victims)) == (2, ["b", "c"])
    assert (quiet.bound, quiet.victims, quiet.reason) == (1, [], "never_preempts")


def test_the_default_class_of_the_cluster_is_that_of_pods_without_one() -> None:
    found = asked(pods(4, 2), now=cluster()._replace(default_class="top"))

    assert (found.forecasts[0].class_name, found.forecasts[0].priority, found.forecasts[0].bound) == ("top", 9000, 2)


def test_each_kind_of_pods_takes_its_place_before_the_next() -> None:
    first, second = asked(pods(3, name="first"), pods(3, name="second")).forecasts

    assert (first.bound, second.bound, second.reason) == (1, 0, "capacity")


def test_what_would_help_counts_the_pods_that_found_a_place_and_names_none_of_them() -> None:
    found = asked(pods(4, 2))

    [one] = found.forecasts
    assert (one.bound, one.reason) == (1, "capacity")
    assert not [each for each in one.occupants if each.pod is None]
    [first, *_] = one.helps
    assert (first.text, sorted(str(each.pod) for each in first.victims)) == ("ask for PriorityClass top", ["b", "c"])


def test_what_all_victims_would_lose_is_added_up_once() -> None:
    found = asked(pods(2, priorityClassName="top"), pods(4, priorityClassName="top", name="second"))

    assert found.lost_gpu_hours == pytest.approx(4 * 3580 / 3600)
    assert float(found.lost_cost or 0) == pytest.approx(4 * 3580 / 3600 * 2.21)


def test_a_restricted_reader_sees_neither_nodes_nor_what_others_would_lose() -> None:
    found = asked(pods(4, 2, priorityClassName="top"), viewer=Viewer({"ml"}))

    [one] = found.forecasts
    assert one.nodes is None
    assert [(each.tier, each.gpus, each.pod) for each in one.victims] == [("low", 2.0, None), ("low", 2.0, "c")]
    assert (found.lost_gpu_hours, found.lost_cost) == (None, None)


@pytest.mark.parametrize(
    ("planned", "message"),
    [
        (pods(0, priorityClassName="none"), "these pods request no GPU; gputally says where pods with GPUs fit"),
        (pods(1, priorityClassName="none"), "PriorityClass 'none' does not exist; there are top, low, quiet"),
        (pods(1, containers=[{"resources": {"limits": {"nvidia.com/gpu": "1.5"}}}]), "the pod: "),
    ],
)
def test_what_cannot_be_foreseen_is_named(planned: PlannedPods, message: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        asked(planned)

    assert str(error.value).startswith(message)


def test_pods_beyond_those_of_one_request_are_named_as_not_evaluated() -> None:
    nodes = [node(f"g{number}", 100) for number in range(12)]
    first, second, third = asked(pods(1, 900), pods(1, 200), pods(1), now=world(nodes, [])).forecasts

    assert (first.bound, first.not_evaluated) == (900, 0)
    assert (second.bound, second.reason, second.not_evaluated) == (100, "", 100)
    assert (third.bound, third.reason, third.not_evaluated) == (0, "", 1)


def test_evictions_beyond_those_that_are_searched_are_not_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gputally.placement.what_if.MAX_EVICTIONS", 1)
    [one] = asked(pods(2, 4, priorityClassName="top")).forecasts

    assert (one.bound, one.reason, one.not_evaluated) == (3, "", 1)


def test_pods_that_evict_take_their_places_too() -> None:
    first, second = asked(pods(2, 3, priorityClassName="top"), pods(2, 2, priorityClassName="top")).forecasts

    assert (first.bound, [each.pods for each in first.victims]) == (3, [1])
    assert (second.bound, second.reason) == (1, "capacity")


def test_pods_that_wait_for_the_same_already_are_counted_as_far_as_they_precede() -> None:
    waiting = [waits("a", 8), waits("b", 8, namespace="lab"), waits("low", 8, priority=1), waits("too-large", 9)]
    now = world([node("g1", 8)], waiting, classes=[PriorityChoice("batch", 400)])

    [one] = asked(pods(1, priorityClassName="batch"), now=now).forecasts
    [restricted] = asked(pods(1, priorityClassName="batch"), viewer=Viewer({"ml"}), now=now).forecasts

    assert (one.bound, one.others_waiting, restricted.others_waiting) == (1, 2, 1)


def test_a_thousand_pods_are_counted() -> None:
    [one] = asked(pods(1, 1000)).forecasts

    assert (one.bound, one.pods) == (4, 1000)


def test_classes_of_the_system_exist_everywhere() -> None:
    [one] = asked(pods(4, 2, priorityClassName="system-node-critical")).forecasts

    assert (one.priority, one.bound) == (2_000_001_000, 2)

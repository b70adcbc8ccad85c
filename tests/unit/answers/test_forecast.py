"""What would happen to pods that do not exist yet."""

from typing import Any

import pytest
from msgspec.structs import replace

from gputally.accounting.fleet.pending_now import PendingNow, PolicyNow
from gputally.answers.forecast import forecast
from gputally.answers.help_words import effect_words
from gputally.answers.parameters import InvalidRequest
from gputally.answers.planned_pods import PlannedPods, plain_pod
from gputally.answers.viewer import ALL, Viewer
from gputally.model.advice import PriorityChoice
from gputally.model.api.pending import QuotaRefusal
from gputally.model.api.what_if import AfterWaiting, WhatIfDocument
from gputally.model.kube.meta import Selector
from gputally.model.needs import QuotaState, Situation, Taken
from gputally.placement.disruption_budgets import Budgets, PodBudget
from gputally.placement.quotas import PodQuota
from tests.unit.answers.pending_world import H100, holds, node, waits, world
from tests.unit.answers.test_partial_gangs import two_gangs

GPUS = "requests.nvidia.com/gpu"
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


def with_quotas(*quotas: PodQuota) -> PendingNow:
    return cluster()._replace(policy=PolicyNow(quotas, {each.namespace: each.namespace for each in quotas}))


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


def test_pods_that_found_a_place_are_never_to_blame_if_others_suffice() -> None:
    found = asked(pods(4, 2))

    [one] = found.forecasts
    assert (one.bound, one.reason) == (1, "capacity")
    assert [each.text for each in one.obstacles] == ["g1: 4 GPUs needed, 0 available"]
    assert sorted(str(each.pod) for each in one.occupants) == ["b", "c"]
    wait, _, ask, *_ = one.helps
    assert wait.text == "wait until lab/b and ml/c on g1 end"
    assert (ask.text, sorted(str(each.pod) for each in ask.victims)) == ("ask for PriorityClass top", ["b", "c"])


def test_of_the_pods_on_a_node_those_that_exist_are_to_blame() -> None:
    [one] = asked(pods(4, 2), now=world([node("g1", 8)], [holds("b", 4, on="g1")])).forecasts

    assert (one.bound, one.text) == (1, "pods of the same or a higher priority hold what it needs")
    assert [(each.pod, each.gpus) for each in one.occupants] == [("b", 4)]


def test_where_only_pods_of_the_request_hold_what_the_next_one_needs_the_answer_says_so() -> None:
    [one] = asked(pods(4, 2), now=world([node("g1", 4)], [])).forecasts

    assert (one.bound, one.reason, one.obstacles, one.occupants) == (1, "capacity", [], [])
    assert one.text == "the pods of this request before it take what fits"


def test_a_quota_admits_some_of_the_pods_and_refuses_the_others_by_name() -> None:
    quota = PodQuota(namespace="ml", name="gpus", hard=((GPUS, 4),), used=((GPUS, 1),))

    [one] = asked(pods(2, 4), now=with_quotas(quota)).forecasts

    assert (one.bound, one.refused, one.reason) == (1, 3, "quota")
    assert one.quota == QuotaRefusal(name="gpus", resource=GPUS, hard=4, used=3, requested=2)
    assert one.text == "its quota gpus is used up: 2 GPUs needed, 3 of 4 used"
    assert one.helps[0].text == "raise quota gpus by 1 GPU"


def test_pods_that_wait_for_nodes_use_the_quota_too() -> None:
    quota = PodQuota(namespace="ml", name="gpus", hard=((GPUS, 12),), used=((GPUS, 0),))

    first, second = asked(pods(4, 2), pods(4, 2), now=with_quotas(quota)).forecasts

    assert (first.bound, first.refused, first.reason, first.quota) == (1, 0, "capacity", None)
    assert (second.bound, second.refused, second.reason) == (0, 1, "capacity")


def test_a_quota_that_can_never_admit_the_pods_is_named() -> None:
    quota = PodQuota(namespace="ml", name="cpus", hard=(("requests.cpu", 500),), used=(("requests.cpu", 0),))
    container = {"resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "2"}}}

    [one] = asked(pods(1, containers=[container]), now=with_quotas(quota)).forecasts

    assert (one.bound, one.refused, one.reason) == (0, 1, "quota_never")
    assert one.quota == QuotaRefusal(name="cpus", resource="requests.cpu", hard=0.5, used=0, requested=2)


def test_quotas_of_tenants_that_the_reader_may_not_know_are_not_told() -> None:
    quota = PodQuota(namespace="ml", name="gpus", hard=((GPUS, 0),), used=((GPUS, 0),))

    [one] = asked(pods(1), viewer=Viewer({"lab"}), now=with_quotas(quota)).forecasts

    assert (one.bound, one.quota) == (1, None)


def test_what_was_not_considered_is_said() -> None:
    now = cluster()._replace(policy=PolicyNow(unknown={"resourcequotas": "they are still being listed"}))

    assert asked(pods(1), now=now).not_considered == {"resourcequotas": "they are still being listed"}


def test_victims_whose_budget_allows_no_disruption_are_marked() -> None:
    now = cluster()
    budget = PodBudget(namespace="ml", name="b", selector=Selector(match_labels={"app": "c"}), allowed=0)
    now.room.budgets = Budgets([budget], lambda _: "ml", lambda uid: {"app": uid.removeprefix("uid-")})

    [one] = asked(pods(4, 2, priorityClassName="top"), now=now).forecasts

    assert sorted((str(each.pod), each.budget) for each in one.victims) == [("b", ""), ("c", "ml/b")]


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


def test_pods_that_wait_with_a_higher_priority_have_their_places_first() -> None:
    now = world([node("g1", 8)], [holds("b", 4, on="g1", priority=1), waits("first", 6, priority=500)], classes=CLASSES)

    [one] = asked(pods(2, 2), now=now).forecasts
    assert (one.bound, one.others_waiting) == (2, 1)
    assert one.after_waiting == AfterWaiting(placed=1, bound=1, reason="capacity")


@pytest.mark.parametrize("priorities", [(900, 500), (500, 500)], ids=["priority", "age"])
def test_places_are_taken_by_priority_and_then_by_age(priorities: tuple[int, int]) -> None:
    small, large = waits("a", 4, priority=priorities[0]), waits("b", 8, priority=priorities[1])
    now = world([node("g1", 8)], [large, small])
    older = [replace(each, since_us=each.since_us - (each.record.name == "a")) for each in now.waiting]

    [one] = asked(pods(4), now=now._replace(waiting=older)).forecasts

    assert one.after_waiting == AfterWaiting(placed=1, bound=1)


def test_pods_that_wait_and_do_not_fit_leave_everything_as_it_is() -> None:
    now = world([node("g1", 8)], [holds("b", 4, on="g1", priority=900), waits("first", 8, priority=500)])

    [one] = asked(pods(2, 2), now=now).forecasts

    assert one.after_waiting == AfterWaiting(placed=0, bound=2)


def test_pods_that_wait_for_something_else_than_nodes_take_no_place() -> None:
    gated = {"gated": Situation(quota=QuotaState(name="q", what="requests.cpu", hard=0, used=0, needed=1))}
    now = world([node("g1", 8)], [waits("gated", 8, priority=500)], situations=gated)

    [one] = asked(pods(2), now=now).forecasts

    assert (one.bound, one.others_waiting, one.after_waiting) == (1, 0, None)


def test_pods_that_wait_for_other_labels_take_places_on_the_same_nodes() -> None:
    choosy = waits("first", 8, priority=500, node_selector={"nvidia.com/gpu.product": H100})
    [one] = asked(pods(2), now=world([node("g1", 8)], [choosy])).forecasts

    assert (one.others_waiting, one.after_waiting) == (0, AfterWaiting(placed=1, bound=0, reason="capacity"))


def test_too_many_waiting_pods_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gputally.answers.competing_pods.MOST_PLACED", 1)
    now = world([node("g1", 8)], [waits("a", 1), waits("b", 2)], classes=CLASSES)

    [one] = asked(pods(8), now=now).forecasts

    assert one.after_waiting == AfterWaiting(placed=1, bound=0, reason="capacity", is_complete=False)


def test_a_pod_for_which_room_is_made_takes_it_first() -> None:
    nominated = {"first": Situation(uid="uid-first", nominated_node="g1")}
    low, first = holds("b", 8, on="g1", priority=1), waits("first", 8, priority=500)
    now = world([node("g1", 8), node("g2", 8)], [low, holds("c", 4, on="g2"), first], situations=nominated)
    now.room.nominate("g1", "uid-first", Taken((("nvidia.com/gpu", 8),), 500))

    [one] = asked(pods(4, 2), now=now).forecasts

    assert (one.bound, one.after_waiting) == (1, AfterWaiting(placed=1, bound=1))


def test_a_thousand_pods_are_counted() -> None:
    [one] = asked(pods(1, 1000)).forecasts

    assert (one.bound, one.pods) == (4, 1000)


def test_classes_of_the_system_exist_everywhere() -> None:
    [one] = asked(pods(4, 2, priorityClassName="system-node-critical")).forecasts

    assert (one.priority, one.bound) == (2_000_001_000, 2)


def job_of_two(now: PendingNow) -> list[str]:
    """What would help two pods with four GPUs each, and what it does then."""
    [one] = asked(pods(4, 2), now=now).forecasts
    assert one.bound == 0
    return [f"{each.text}: {effect_words(each, '')}" for each in one.helps]


def test_what_makes_room_for_one_of_two_pods_says_so() -> None:
    helps = job_of_two(world([node("g1", 4)], [holds("b", 4, on="g1")]))

    assert helps[0] == "wait until ml/b on g1 ends: 1 of 2 then fits"
    assert "add an empty node like g1: 1 of 2 then fits" in helps
    assert "request only 2 GPUs: all 2 then fit" not in helps


def test_what_makes_room_for_both_says_so_and_an_eviction_makes_room_for_one() -> None:
    low = {"tier": "low", "priority": 1}
    held = [holds("b", 8, on="g1"), holds("c", 4, on="g2", **low)]  # type: ignore[arg-type] # its fields

    helps = job_of_two(world([node("g1"), node("g2", 4)], held, classes=CLASSES))

    assert "wait until ml/b on g1 ends: all 2 then fit" in helps
    assert any(each.startswith("ask for PriorityClass top: one of 2 then preempts") for each in helps)


def test_a_quota_that_is_raised_by_what_one_pod_lacks_admits_one() -> None:
    quota = PodQuota(namespace="ml", name="gpus", hard=((GPUS, 4),), used=((GPUS, 4),))

    [one] = asked(pods(2, 2), now=with_quotas(quota)).forecasts

    assert [effect_words(each, "") for each in one.helps[:1]] == ["1 of 2 then fits"]


def test_nobody_waits_for_a_pod_whose_gang_is_in_a_deadlock() -> None:
    now = two_gangs()
    assert now.deadlocks

    [one] = asked(pods(1), now=now).forecasts
    [freed] = asked(pods(1), now=two_gangs()._replace(deadlocks=())).forecasts

    assert (one.reason, freed.reason) == ("capacity", "capacity")
    assert [each.text for each in one.helps if "wait until" in each.text] == []
    assert [each.text for each in freed.helps if "wait until" in each.text] != []

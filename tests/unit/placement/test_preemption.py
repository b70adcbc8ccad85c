import pytest

from gputally.model.kube.meta import Selector
from gputally.model.verdicts import Eviction
from gputally.placement.disruption_budgets import Budgets, PodBudget
from gputally.placement.eviction import would_evict
from gputally.placement.what_if import what_if
from tests.unit.placement.cluster import needs, place, room, taken

APP = {"app": "guarded"}
SELECTOR = Selector(match_labels=APP)


def budgets(allowed: int, *uids: str) -> Budgets:
    """One budget that selects these pods."""
    one = PodBudget(namespace="ml", name="budget", selector=SELECTOR, allowed=allowed)
    return Budgets([one], lambda _: "ml", lambda uid: APP if uid in uids else {})


def test_the_least_important_pods_are_victims_and_of_equal_ones_the_latest() -> None:
    full = room(
        place(gpu=3),
        low=("n1", taken(priority=1)),
        early=("n1", taken(priority=5, at=1)),
        late=("n1", taken(priority=5, at=2)),
    )

    assert would_evict(needs(gpu=1), full) == Eviction(node="n1", victims=("low",))
    assert would_evict(needs(gpu=2), full) == Eviction(node="n1", victims=("late", "low"))


def test_a_pod_that_has_not_started_counts_as_the_latest() -> None:
    full = room(place(gpu=2), started=("n1", taken(priority=5, at=9)), new=("n1", taken(priority=5, at=None)))

    assert would_evict(needs(gpu=1), full) == Eviction(node="n1", victims=("new",))


def test_pods_of_the_same_priority_and_pods_that_would_not_help_stay() -> None:
    full = room(place(gpu=2), equal=("n1", taken(priority=100)), cpu=("n1", taken(gpu=0, priority=1)))

    assert would_evict(needs(gpu=2), full) is None


def test_a_pod_whose_policy_is_never_evicts_nobody() -> None:
    full = room(place(gpu=1), low=("n1", taken(priority=1)))

    assert would_evict(needs(may_preempt=False), full) is None


def test_a_large_victim_is_evicted_for_a_small_pod() -> None:
    full = room(place(gpu=4), big=("n1", taken(gpu=4, priority=1)))

    assert would_evict(needs(gpu=1), full) == Eviction(node="n1", victims=("big",))


def test_the_node_whose_most_important_victim_matters_least_is_chosen() -> None:
    full = room(
        place("n1", gpu=1),
        place("n2", gpu=2),
        a=("n1", taken(priority=9)),
        b=("n2", taken(priority=8)),
        c=("n2", taken(priority=8, at=5)),
    )

    assert would_evict(needs(gpu=1), full) == Eviction(node="n2", victims=("c",))


def test_of_equal_nodes_that_with_fewer_victims_is_chosen_whatever_the_sum_of_their_priorities() -> None:
    full = room(
        place("n1", gpu=2),
        place("n2", gpu=2),
        a=("n1", taken(priority=9)),
        b=("n1", taken(priority=-1000)),
        c=("n2", taken(gpu=2, priority=9)),
    )

    assert would_evict(needs(gpu=2), full) == Eviction(node="n2", victims=("c",))


def test_of_equal_nodes_that_whose_victims_started_last_is_chosen() -> None:
    full = room(
        place("n1", gpu=1),
        place("n2", gpu=1),
        old=("n1", taken(priority=1, at=1)),
        young=("n2", taken(priority=1, at=2)),
    )

    assert would_evict(needs(gpu=1), full) == Eviction(node="n2", victims=("young",))


def test_pods_whose_budget_allows_no_disruption_are_evicted_only_if_nothing_else_helps() -> None:
    full = room(place(gpu=2), guarded=("n1", taken(priority=1)), other=("n1", taken(priority=50)))
    full.budgets = budgets(0, "guarded")

    assert would_evict(needs(gpu=1), full) == Eviction(node="n1", victims=("other",))
    assert would_evict(needs(gpu=2), full) == Eviction(
        node="n1", victims=("other", "guarded"), violating=(("guarded", "ml/budget"),)
    )


def test_a_node_without_a_violation_is_preferred() -> None:
    full = room(place("n1", gpu=1), place("n2", gpu=1), low=("n1", taken(priority=1)), high=("n2", taken(priority=50)))
    full.budgets = budgets(0, "low")

    assert would_evict(needs(gpu=1), full) == Eviction(node="n2", victims=("high",))


def test_a_budget_allows_the_disruption_of_the_most_important_pods_it_selects() -> None:
    full = room(place(gpu=2), a=("n1", taken(priority=9)), b=("n1", taken(priority=1)))
    full.budgets = budgets(1, "a", "b")

    assert would_evict(needs(gpu=1), full) == Eviction(node="n1", victims=("a",))


def test_each_preemption_uses_up_what_a_budget_allows() -> None:
    full = room(place("n1", gpu=1), place("n2", gpu=1), a=("n1", taken(priority=1)), b=("n2", taken(priority=2)))
    full.budgets = budgets(1, "a", "b")

    first, second = what_if(needs(gpu=1), full, count=2).evictions

    assert (first.violating, second.violating) == ((), (("b", "ml/budget"),))
    assert full.budgets.violated([("a", taken())]) == {}  # a forecast leaves the budgets as they are


def test_an_empty_selector_and_pods_without_labels_are_out_of_any_budget() -> None:
    empty = Budgets(
        [PodBudget(namespace="ml", name="all", selector=Selector(), allowed=0)], lambda _: "ml", lambda _: APP
    )
    bare = budgets(0)

    assert not empty.violated([("a", taken())])
    assert not bare.violated([("a", taken())])
    assert not bare.is_partial


def test_pods_whose_labels_are_not_known_make_the_answer_partial() -> None:
    found = Budgets([PodBudget(namespace="ml", name="b", selector=SELECTOR, allowed=0)], lambda _: "ml", lambda _: None)

    assert not found.violated([("a", taken())])
    assert found.is_partial


def test_only_so_many_pods_are_compared_with_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gputally.placement.disruption_budgets.MOST_COMPARED", 1)
    found = budgets(0, "a", "b")

    assert found.violated([("a", taken()), ("b", taken())]) == {"a": "ml/budget"}
    assert found.is_partial


def test_more_nodes_are_compared_until_one_has_no_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gputally.placement.eviction.COMPARED", 1)
    full = room(place("n1", gpu=1), place("n2", gpu=1), a=("n1", taken(priority=1)), b=("n2", taken(priority=9)))
    full.budgets = budgets(0, "a")

    assert would_evict(needs(gpu=1), full) == Eviction(node="n2", victims=("b",))


def test_room_that_is_made_for_others_is_left_to_them() -> None:
    full = room(place(gpu=2), low=("n1", taken(priority=1)))
    full.nominate("n1", "other", taken(gpu=1, priority=100))

    assert would_evict(needs(gpu=2), full) is None
    assert would_evict(needs(gpu=2, priority=200), full) == Eviction(node="n1", victims=("low",))
    assert would_evict(needs(gpu=2), full, uid="other") == Eviction(node="n1", victims=("low",))

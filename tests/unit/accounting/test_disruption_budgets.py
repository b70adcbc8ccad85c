"""Whether a disruption violates a PodDisruptionBudget: by what was observed before it was decided."""

from dataclasses import replace

import pytest
from msgspec import structs

from gputally.accounting.base.limits import SELECTOR_CHARACTERS
from gputally.accounting.totals.total import Total
from gputally.model.disruptions import Victim
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Selector
from gputally.model.kube.policy import DisruptionBudgetSpec, PodDisruptionBudget
from gputally.model.observation import Bookmark
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.policies import budget
from tests.core.replay import Replay

KIND = Kind.DISRUPTION_BUDGETS
RUNNING = PodForm(name="victim", uid="victim", tier="low", node="n1", scheduled=10, started=11, labels={"app": "train"})
PREEMPTED = replace(RUNNING, marked=50, deleted=50, version=2)


def second(form: PodForm) -> PodForm:
    return replace(form, name="second", uid="second")


def watching(*budgets: PodDisruptionBudget, at: float = 5) -> Replay:
    """Two pods run, and these budgets are known."""
    replay = Replay()
    replay.see(NodeForm(), at=1)
    replay.relist_objects(KIND, *budgets, at=at)
    replay.see(RUNNING, second(RUNNING), at=20)
    return replay


def found(replay: Replay, uid: str = "victim") -> Victim:
    return replay.fleet.disrupted.victims.known[uid]


def counted(replay: Replay) -> dict[tuple[str, ...], int]:
    return dict(replay.true(Total.BUDGET_VIOLATIONS, 1000))


def test_a_budget_that_allowed_no_disruption_is_violated() -> None:
    replay = watching(budget(0))
    replay.see(PREEMPTED, at=50.4)

    assert found(replay).budget_violated is True
    assert counted(replay) == {("low", "ml", "preemption"): 1}


def test_a_budget_that_allowed_one_is_not() -> None:
    replay = watching(budget(1))
    replay.see(PREEMPTED, at=50.4)

    assert found(replay).budget_violated is False
    assert counted(replay) == {}


def test_the_status_update_of_the_disruption_itself_is_not_the_state_before() -> None:
    replay = watching(budget(1))
    replay.see_object(KIND, budget(0), at=50.3)  # the controller was faster than the watch of pods
    replay.see(PREEMPTED, at=50.4)

    assert found(replay).budget_violated is False


def test_of_two_victims_of_one_second_the_budget_allows_one() -> None:
    replay = watching(budget(1))
    replay.see(PREEMPTED, at=50.4)
    replay.see_object(KIND, budget(0), at=50.5)
    replay.see(second(PREEMPTED), at=50.6)

    assert [found(replay).budget_violated, found(replay, "second").budget_violated] == [False, True]


def test_a_victim_that_the_status_shows_does_not_count_twice() -> None:
    replay = watching(budget(2))
    replay.see(PREEMPTED, at=50.4)
    replay.see_object(KIND, budget(1), at=50.5)
    replay.see(second(replace(PREEMPTED, marked=52, deleted=52)), at=52.1)

    assert found(replay, "second").budget_violated is False


def test_a_victim_that_no_status_shows_yet_counts() -> None:
    replay = watching(budget(1))
    replay.see(PREEMPTED, at=50.4)
    replay.see(second(replace(PREEMPTED, marked=51, deleted=51)), at=51.1)

    assert found(replay, "second").budget_violated is True


def with_selector(selector: Selector | None) -> PodDisruptionBudget:
    found = budget(0)
    return structs.replace(found, spec=structs.replace(found.spec, selector=selector))


@pytest.mark.parametrize("guard", [budget(0, labels={"app": "serve"}), with_selector(None)])
def test_a_budget_of_other_pods_does_not_matter(guard: PodDisruptionBudget) -> None:
    replay = watching(guard)
    replay.see(PREEMPTED, at=50.4)

    assert found(replay).budget_violated is False


def test_an_empty_selector_selects_all_pods_of_the_namespace() -> None:
    replay = watching(with_selector(Selector()))
    replay.see(PREEMPTED, at=50.4)

    assert found(replay).budget_violated is True


def test_in_a_namespace_with_very_many_budgets_it_is_unknown() -> None:
    many = (KIND.limit.in_namespace or 0) + 1
    replay = watching(*(budget(0, f"guard-{number}") for number in range(many)))
    replay.see(PREEMPTED, at=50.4)

    assert found(replay).budget_violated is None


LONG = Selector(match_labels={"app": "x" * SELECTOR_CHARACTERS})


@pytest.mark.parametrize("how", ["deleted", "shortened", "missing"])
def test_a_budget_whose_selector_is_too_long_makes_verdicts_unknown_until_it_is_gone(how: str) -> None:
    long = structs.replace(budget(0, "long"), spec=DisruptionBudgetSpec(selector=LONG))
    replay = watching(long)
    replay.see(PREEMPTED, at=50.4)
    if how == "deleted":
        replay.lose_object(KIND, long, at=60)
    elif how == "shortened":
        replay.see_object(KIND, budget(0, "long", labels={"app": "serve"}), at=60)
    else:
        replay.relist_objects(KIND, at=60)
    replay.see(replace(PREEMPTED, name="second", uid="second", marked=90, deleted=90), at=90.4)

    assert [found(replay, uid).budget_violated for uid in ("victim", "second")] == [None, False]


def test_without_the_watch_it_is_unknown() -> None:
    replay = Replay()
    replay.see(NodeForm(), at=1)
    replay.see(RUNNING, at=20)
    replay.see(PREEMPTED, at=50.4)

    assert found(replay).budget_violated is None
    assert counted(replay) == {}


def test_before_the_first_complete_list_it_is_unknown() -> None:
    replay = watching(at=50.2)
    replay.see(PREEMPTED, at=50.4)

    assert found(replay).budget_violated is None


@pytest.mark.parametrize(("bookmark", "known"), [(100, None), (250, True)])
def test_while_the_watch_reports_nothing_it_is_unknown(bookmark: int, known: bool | None) -> None:  # noqa: FBT001 - a parameter
    replay = watching(budget(0))
    replay.apply(Bookmark(kind=KIND, version="9", at_us=us(bookmark), since_us=us(bookmark)))
    replay.see(replace(PREEMPTED, marked=300, deleted=300), at=300.4)

    assert found(replay).budget_violated is known


def test_a_budget_whose_status_is_not_computed_yet_is_unknown() -> None:
    replay = watching(budget(0, is_computed=False))
    replay.see(PREEMPTED, at=50.4)

    assert found(replay).budget_violated is None


def test_a_budget_that_was_created_or_deleted_otherwise_does_not_matter() -> None:
    replay = watching(budget(0, "gone"))
    replay.lose_object(KIND, budget(0, "gone"), at=40)
    replay.see_object(KIND, budget(0, "later", created=51), at=51.2)
    replay.see(PREEMPTED, at=52)

    assert found(replay).budget_violated is False


def test_the_eviction_api_keeps_budgets_itself() -> None:
    replay = watching(budget(1))
    replay.see_object(KIND, budget(0), at=49.999)  # it takes the disruption off the status first
    replay.see(replace(PREEMPTED, mark="EvictionByEvictionAPI"), at=50.4)

    assert found(replay).budget_violated is False


def test_a_pod_of_which_only_the_deletion_is_observed_has_its_last_labels() -> None:
    replay = watching(budget(0, labels={"app": "train"}))
    replay.lose(PREEMPTED, at=50.4)

    assert found(replay).budget_violated is True


def test_a_pod_that_vanished_in_a_gap_is_unknown() -> None:
    replay = watching(budget(0))
    replay.see(replace(RUNNING, marked=50, version=2), at=50.1)  # its deletion is not observed
    replay.relist(Kind.PODS, second(RUNNING), at=60, since=30)

    assert found(replay).budget_violated is None


def test_the_verdict_stays_whatever_follows() -> None:
    replay = watching(budget(0))
    replay.see(PREEMPTED, at=50.4)
    replay.see_object(KIND, budget(5), at=55)
    replay.see(replace(PREEMPTED, finished=60, exit_code=143, phase="Failed", version=3), at=61)
    replay.scrape(at=62)
    replay.restart()
    replay.see(replace(PREEMPTED, finished=60, exit_code=143, phase="Failed", version=4), at=70)

    assert found(replay).budget_violated is True
    assert counted(replay) == {("low", "ml", "preemption"): 1}


def test_a_disruption_that_was_none_is_withdrawn() -> None:
    replay = watching(budget(0))
    marked = replace(RUNNING, marked=50, mark="DeletionByTaintManager", deleted=50, version=2)
    replay.see(marked, at=50.4)
    replay.see(replace(marked, finished=45, exit_code=0, phase="Succeeded", version=3), at=55)

    assert "victim" not in replay.fleet.disrupted.victims.known
    assert counted(replay) == {}

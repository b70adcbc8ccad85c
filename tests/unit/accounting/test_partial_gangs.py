"""Gangs of which some pods hold GPUs while others are not bound, and gangs that wait for each other."""

from dataclasses import replace
from unittest.mock import patch

import pytest

from gputally.accounting.waiting.gang_deadlocks import MOST_GANGS, MOST_OF_TENANT
from gputally.accounting.waiting.snapshot import PendingSums
from gputally.model.kube.kinds import Kind
from gputally.model.partial_gangs import NotCompared, PartialGang, PartialSum
from gputally.model.rules import Rules
from gputally.model.units import GPU
from gputally.placement.gangs import fitting
from tests.core.gang_pods import TRAINING, WATCHED, group, job
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay


def replay_of(*pods: PodForm, gpus: int = 8, rules: Rules | None = None) -> Replay:
    replay = Replay(opened=0, rules=rules or Rules())
    replay.relist(Kind.NODES, NodeForm(name="n1", gpus=gpus), at=1, since=None)
    replay.relist(Kind.PODS, *pods, at=30, since=None)
    return replay


def gang(name: str, *, bound: int, pending: int, at: int = 10, gpus: int = 1) -> list[PodForm]:
    """Pods of one gang; they have the same priority."""
    labels = {"training.kubeflow.org/job-name": name}
    form = PodForm(labels=labels, created=at, gpus=gpus, tier="gold", priority=5)
    running = replace(form, node="n1", scheduled=at, started=at)
    return [replace(running if i < bound else form, name=f"{name}-{i}") for i in range(bound + pending)]


def waits(replay: Replay, at: float = 40) -> PendingSums:
    """Twice, since gangs are compared after the requests of their pods were read."""
    replay.scrape(at - 5)
    found = replay.scrape(at).waits
    assert found
    return found


def partial(replay: Replay) -> list[PartialGang]:
    return list(replay.fleet.waiting.situations.partial_gangs.gangs.read().values())


def test_a_gang_of_eight_with_six_bound_is_partial_since_its_first_pod_was_bound() -> None:
    replay = replay_of(*gang("a", bound=6, pending=2), gpus=6)

    assert waits(replay).partial.sums == {"gold": PartialSum(1, 6 * GPU, us(10))}
    (found,) = partial(replay)
    assert (found.kind, found.namespace, found.name) == ("TrainingJob", "ml", "a")
    assert (found.bound, found.needed, found.missing, len(found.pending)) == (6, 8, 2, 2)


def test_a_gang_is_partial_no_longer_once_all_of_it_is_bound() -> None:
    pods = gang("a", bound=1, pending=1)
    replay = replay_of(*pods)
    assert waits(replay).partial.sums
    replay.see(replace(pods[1], node="n1", scheduled=45, version=2), at=45)

    assert waits(replay, 50).partial.sums == {}
    assert replay.by_state(50) == {"gang_wait": 40, "starting": 5}


def test_a_gang_that_holds_nothing_or_has_lost_a_pod_after_its_start_is_not_partial() -> None:
    pods = gang("a", bound=2, pending=0)
    replay = replay_of(*pods, *gang("b", bound=0, pending=2))
    replay.lose(replace(pods[1], deleted=35, grace=0, version=3), at=35)
    replay.see(replace(pods[1], name="next", node="", scheduled=None, started=None, created=36), at=36)

    assert waits(replay).partial.sums == {}


def test_pods_that_do_not_exist_are_missing_too() -> None:
    replay = replay_of(*[replace(each, labels=TRAINING) for each in gang("a", bound=1, pending=0)])
    assert waits(replay).partial.sums == {}
    labels = {"jobset.sigs.k8s.io/jobset-name": "js", "jobset.sigs.k8s.io/jobset-uid": "u"}
    replay.see_object(Kind.JOBS, job(3, labels), at=41)
    replay.see(*(replace(each, name="x", labels=labels) for each in gang("b", bound=1, pending=0)), at=42)

    waits(replay, 50)
    (found,) = partial(replay)
    assert (found.name, found.bound, found.needed, found.pending) == ("js", 1, 3, ())


def test_two_gangs_that_would_fit_without_each_other_are_deadlocked() -> None:
    replay = replay_of(*gang("a", bound=4, pending=4), *gang("b", bound=4, pending=4))

    assert waits(replay).partial.deadlocked == 2
    assert replay.fleet.waiting.situations.partial_gangs.found == [("TrainingJob/ml/a", "TrainingJob/ml/b")]


def test_a_gang_that_could_go_on_now_deadlocks_with_nobody() -> None:
    replay = replay_of(*gang("a", bound=4, pending=4), *gang("b", bound=4, pending=4), gpus=16)

    assert waits(replay).partial.deadlocked == 0


def test_a_gang_that_waits_for_another_one_that_waits_for_pods_without_a_gang_is_not_deadlocked() -> None:
    alone = PodForm(name="x", node="n1", scheduled=5, started=6, gpus=6, tier="gold", priority=5)
    replay = replay_of(alone, *gang("a", bound=1, pending=1), *gang("b", bound=1, pending=6))

    assert waits(replay).partial.deadlocked == 0


def test_a_deadlock_is_over_when_one_gang_gives_up() -> None:
    first = gang("a", bound=4, pending=4)
    replay = replay_of(*first, *gang("b", bound=4, pending=4))
    assert waits(replay).partial.deadlocked == 2
    for form in first:
        replay.lose(replace(form, deleted=45, grace=0, version=3), at=45)

    assert waits(replay, 60).partial.deadlocked == 0


def test_a_deadlock_is_over_when_one_gang_declares_that_it_needs_no_more() -> None:
    replay = replay_of(*grouped("a"), *grouped("b"), rules=WATCHED)
    for name in "ab":
        replay.see_object(Kind.COSCHEDULING_GROUPS, group(Kind.COSCHEDULING_GROUPS, name, 8), at=31)
    assert waits(replay).partial.deadlocked == 2
    replay.see_object(Kind.COSCHEDULING_GROUPS, group(Kind.COSCHEDULING_GROUPS, "a", 4), at=45)

    found = waits(replay, 60).partial

    assert (found.deadlocked, found.sums["gold"].gangs) == (0, 1)


def grouped(name: str) -> list[PodForm]:
    """Half of a gang of coscheduling is bound."""
    labels = {"scheduling.x-k8s.io/pod-group": name}
    return [replace(each, labels=labels) for each in gang(name, bound=4, pending=4)]


def test_of_many_partial_gangs_the_oldest_are_compared_and_all_are_counted() -> None:
    pods = [each for i in range(40) for each in gang(f"g{i}", bound=1, pending=39, at=10 + i // 4)]
    replay = replay_of(*pods, gpus=40)
    for at in range(40, 80, 5):
        found = waits(replay, at)

    assert (found.partial.sums["gold"].gangs, found.partial.deadlocked) == (40, 0)
    assert found.partial.not_compared == {NotCompared.LIMIT: 40 - MOST_OF_TENANT}


def old_gangs(tenant: str, count: int) -> list[PodForm]:
    """Each with one bound pod, and one that no node could hold."""
    forms = [each for i in range(count) for each in gang(f"{tenant}-{i}", bound=1, pending=1, at=5, gpus=1)]
    labels = {each.name: {"scheduling.x-k8s.io/pod-group": each.name.rpartition("-")[0]} for each in forms}
    return [
        replace(each, namespace=tenant, labels=labels[each.name], gpus=1 if each.node else 64, started=None)
        for each in forms
    ]


@pytest.mark.parametrize("count", [15, 16, 40])
@pytest.mark.parametrize("lasts", [True, False])
def test_old_gangs_of_one_tenant_hide_no_deadlock_of_others(count: int, lasts: bool) -> None:  # noqa: FBT001 - a case
    hostile = old_gangs("hostile", count)
    replay = replay_of(
        *hostile, *gang("a", bound=4, pending=4), *gang("b", bound=4, pending=4), gpus=8 + count, rules=WATCHED
    )
    for each in (each for each in hostile if each.node):
        name = each.labels["scheduling.x-k8s.io/pod-group"]
        declared = group(Kind.COSCHEDULING_GROUPS, name, 2, namespace="hostile")
        replay.see_object(Kind.COSCHEDULING_GROUPS, declared, at=31)
    if not lasts:
        replay.lose(*(each for each in hostile if not each.node), at=32)
    for at in range(40, 90, 5):
        found = waits(replay, at)

    assert found.partial.sums["gold"].gangs == count + 2
    assert found.partial.deadlocked == 2
    skipped = {NotCompared.LIMIT: max(0, count - MOST_OF_TENANT)} if lasts else {NotCompared.UNKNOWN: count}
    assert found.partial.not_compared == {reason: gangs for reason, gangs in skipped.items() if gangs}


def test_the_work_of_a_step_is_bounded_and_all_gangs_get_their_turn() -> None:
    pods = [
        each
        for tenant in range(10)
        for i in range(10)
        for each in (replace(pod, namespace=f"t{tenant}") for pod in gang(f"t{tenant}-g{i}", bound=1, pending=1))
    ]
    replay = replay_of(*pods, gpus=100)
    with patch("gputally.placement.gangs.fitting", wraps=fitting) as placed:
        compared = set[str]()
        for at in range(40, 2_000, 5):
            placed.reset_mock()
            found = replay.scrape(at).waits
            assert placed.call_count <= 2 * MOST_GANGS
            compared.update(key for each in replay.fleet.waiting.situations.partial_gangs.found for key in each)

    assert found
    assert found.partial.not_compared == {NotCompared.LIMIT: 100 - MOST_GANGS}
    assert MOST_GANGS <= found.partial.deadlocked <= 100
    assert len(compared) == 100


def test_many_tenants_with_an_old_gang_each_hide_no_deadlock_of_others() -> None:
    hostile = [each for number in range(MOST_GANGS + 10) for each in gang_of(f"hostile-{number:02}")]
    replay = replay_of(*hostile, *gang("a", bound=4, pending=4, at=20), *gang("b", bound=4, pending=4, at=20), gpus=82)
    found = [waits(replay, at).partial for at in range(40, 1_000, 5)]

    assert found[0].not_compared == {NotCompared.LIMIT: 12}
    first = next(number for number, each in enumerate(found) if each.deadlocked)
    assert {each.deadlocked for each in found[first:]} == {2}, "it is remembered while others are compared"
    replay.lose(*gang("b", bound=4, pending=4, at=20), at=1_005)
    assert waits(replay, 1_010).partial.deadlocked == 0


def gang_of(tenant: str) -> list[PodForm]:
    """With one bound pod, and one that no node could hold."""
    forms = [replace(each, namespace=tenant) for each in gang(tenant, bound=1, pending=1, at=5)]
    return [each if each.node else replace(each, gpus=200) for each in forms]

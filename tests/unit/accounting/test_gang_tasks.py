"""Gangs of Volcano of which each task needs some of its own pods."""

from dataclasses import replace

import msgspec
import pytest

from gputally.accounting.waiting.gangs import task_of
from gputally.errors import MalformedObject
from gputally.frameworks.groups import declared_by
from gputally.frameworks.volcano import MOST_TASKS
from gputally.model.kube.kinds import Kind
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.partial_gangs import PartialGang, TaskShort
from gputally.model.verdicts import Reason
from tests.core.gang_pods import TASK, VOLCANO, WATCHED, cluster, group, pod, start
from tests.core.manifests import PodForm, us
from tests.core.replay import Replay
from tests.unit.accounting.test_gangs import situations
from tests.unit.accounting.test_partial_gangs import partial, replay_of
from tests.unit.accounting.test_waiting import reasons

TASKS = {"ps": 1, "worker": 3}
GROUP = group(Kind.VOLCANO_GROUPS, "c", 4, tasks=TASKS)


def task_pods(**tasks: int) -> list[PodForm]:
    """So many pods of each task of one Volcano job, which name the group `c`."""
    return [
        replace(
            pod(f"{task}-{i}", VOLCANO | {TASK: task}),
            annotations={"scheduling.k8s.io/group-name": "c", TASK: task},
            tier="gold",
        )
        for task, count in tasks.items()
        for i in range(count)
    ]


def started(*order: str, declared: bool = True, **tasks: int) -> Replay:
    """All pods exist at 5; these start at 10, 20, 30 and so on."""
    replay = cluster(WATCHED)
    if declared:
        replay.see_object(Kind.VOLCANO_GROUPS, GROUP, at=4)
    pods = {each.name: each for each in task_pods(**tasks)}
    replay.see(*pods.values(), at=5)
    for i, name in enumerate(order):
        start(replay, pods[name], 10 + 10 * i)
    return replay


def test_a_gang_is_complete_once_each_task_has_its_minimum() -> None:
    replay = started("ps-0", "ps-1", "worker-0", "worker-1", "worker-2", ps=2, worker=3)

    assert replay.spans("ps-0")[1:] == [("gang_wait", 10, 50), ("running", 50, None)]


def test_the_minimum_of_the_group_counts_besides() -> None:
    found = cluster(WATCHED)
    found.see_object(Kind.VOLCANO_GROUPS, group(Kind.VOLCANO_GROUPS, "c", 5, tasks=TASKS), at=4)
    pods = task_pods(ps=2, worker=3)
    found.see(*pods, at=5)
    for i, each in enumerate((pods[0], *pods[2:], pods[1])):
        start(found, each, 10 + 10 * i)

    assert found.spans("ps-0")[1:] == [("gang_wait", 10, 50), ("running", 50, None)]


def test_a_group_that_is_observed_late_corrects_what_was_accounted() -> None:
    replay = started("ps-0", "ps-1", "worker-0", "worker-1", declared=False, ps=2, worker=3)
    replay.see_object(Kind.VOLCANO_GROUPS, GROUP, at=45)
    assert replay.spans("ps-0")[1:] == [("gang_wait", 10, None)]

    start(replay, task_pods(worker=3)[2], 50)
    assert replay.spans("ps-0")[1:] == [("gang_wait", 10, 50), ("running", 50, None)]


def test_a_task_without_gpus_is_not_waited_for() -> None:
    replay = started("worker-0", "worker-1", "worker-2", "worker-3", worker=4)  # the pods of ps have no GPUs

    assert replay.spans("worker-0")[1:] == [("gang_wait", 10, 40), ("running", 40, None)]


def test_the_minimums_of_tasks_survive_a_restart() -> None:
    replay = started("ps-0", "ps-1", "worker-0", ps=2, worker=3)
    replay.flush()
    replay.restart()
    for i in (1, 2):
        start(replay, task_pods(worker=3)[i], 50 + 10 * i)  # before the groups are listed again

    assert replay.spans("ps-0")[1:] == [("gang_wait", 10, 70), ("running", 70, None)]


def test_minimums_of_tasks_that_exceed_that_of_the_group_do_not_count() -> None:
    found = declared_by(group(Kind.VOLCANO_GROUPS, "c", 3, tasks=TASKS), at_us=0)

    assert found
    assert (found.pods, found.tasks) == (3, ())


@pytest.mark.parametrize("tasks", [{"worker": -1}, {"worker": 2**62}, {f"t{i}": 1 for i in range(65)}])
def test_impossible_minimums_of_tasks_are_malformed(tasks: dict[str, int]) -> None:
    with pytest.raises(MalformedObject, match="ml/c"):
        declared_by(group(Kind.VOLCANO_GROUPS, "c", 4, tasks=tasks), at_us=0)


def test_minimums_of_a_wrong_type_are_rejected_as_a_whole() -> None:
    with pytest.raises(msgspec.ValidationError):
        group(Kind.VOLCANO_GROUPS, "c", 4, tasks={"worker": "three"})


def test_tasks_whose_name_no_object_can_have_are_ignored() -> None:
    found = declared_by(group(Kind.VOLCANO_GROUPS, "c", 4, tasks={"\x1b[2J": 1, "": 1, "idle": 0, "ps": 1}), at_us=0)

    assert found
    assert found.tasks == (("ps", 1),)


def test_while_a_task_lacks_pods_the_times_of_all_pods_are_not_compared_with_each_start() -> None:
    replay = started(*(f"worker-{i}" for i in range(4)), ps=1, worker=4)
    gangs = replay.fleet.pods.gangs
    [(key, gang)] = gangs.members.items()
    assert not gang.may_be_complete(4, gangs.known[key].tasks)

    start(replay, task_pods(ps=1)[0], 60)
    assert gangs.known[key].complete_us == us(60)


def test_more_tasks_than_a_group_may_declare_are_not_kept() -> None:
    replay = cluster(WATCHED)
    replay.see(*task_pods(**{f"t{i}": 1 for i in range(2 * MOST_TASKS)}), at=5)

    [gang] = replay.fleet.pods.gangs.members.values()
    assert len(gang.tasks) == MOST_TASKS


@pytest.mark.parametrize("task", ["t" * 254, "a/b", "\x1b[2J"])
def test_a_task_whose_name_no_group_can_declare_is_not_kept(task: str) -> None:
    assert task_of(pod_with(task)) == ""
    assert task_of(pod_with("worker")) == "worker"


def pod_with(task: str) -> PlaceablePod:
    return msgspec.convert({"metadata": {"name": "a", "annotations": {TASK: task}}}, PlaceablePod)


def bound(pods: list[PodForm], count: int) -> list[PodForm]:
    return [replace(each, node="n1", scheduled=10, version=2) if i < count else each for i, each in enumerate(pods)]


def test_a_gang_is_partial_until_each_task_has_its_minimum() -> None:
    pods = bound(task_pods(ps=2, worker=3), 4)
    replay = replay_of(*pods, rules=WATCHED)
    replay.see_object(Kind.VOLCANO_GROUPS, GROUP, at=31)

    (found,) = partial(replay)
    assert isinstance(found, PartialGang)
    assert (found.bound, found.needed, found.missing) == (4, 5, 1)
    assert found.tasks == (TaskShort("worker", 2, 3),)

    replay.see(replace(pods[4], node="n1", scheduled=40, version=2), at=40)
    assert partial(replay) == []


def test_the_verdict_of_a_gang_whose_task_lacks_pods_names_the_task() -> None:
    replay = replay_of(*bound(task_pods(ps=3, worker=2), 1), rules=WATCHED)
    replay.see_object(Kind.VOLCANO_GROUPS, GROUP, at=31)
    replay.scrape(40)

    assert reasons(replay, "worker-1")[-1][0] is Reason.GANG
    [found] = situations(replay, "worker-1")
    assert found
    [ps, worker] = found.tasks
    assert (worker.name, worker.least, worker.members, worker.bound) == ("worker", 3, 2, 0)
    assert (ps.name, ps.least, ps.members, ps.bound) == ("ps", 1, 3, 1)
    verdict = replay.fleet.waiting.verdicts.of["uid-worker-1"].verdict
    assert [(each.what, each.needed, each.free) for each in verdict.obstacles] == [
        ("Volcano PodGroup c, task worker: members", 3, 2)
    ]


def test_a_pod_is_schedulable_once_its_task_has_enough_members() -> None:
    replay = replay_of(*bound(task_pods(ps=3, worker=2), 1), rules=WATCHED)
    replay.see_object(Kind.VOLCANO_GROUPS, GROUP, at=31)
    replay.scrape(40)
    replay.see(*task_pods(worker=3)[2:], at=41)
    replay.scrape(45)

    assert reasons(replay, "worker-1")[-1][0] is Reason.SCHEDULABLE


def test_a_gang_whose_task_does_not_fit_says_how_many_do() -> None:
    pods = [replace(each, gpus=4 if "worker" in each.name else 1) for each in task_pods(ps=3, worker=3)]
    replay = replay_of(*pods, gpus=11, rules=WATCHED)
    replay.see_object(Kind.VOLCANO_GROUPS, GROUP, at=31)
    replay.scrape(40)

    verdict = replay.fleet.waiting.verdicts.of["uid-ps-0"].verdict
    assert verdict.reason is Reason.GANG
    assert [(each.what, each.needed, each.free) for each in verdict.obstacles] == [
        ("Volcano PodGroup c, task worker", 3, 2)
    ]

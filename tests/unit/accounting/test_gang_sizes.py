"""How many pods a gang has, as its framework states it."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from gputally.model.kube.kinds import Kind
from tests.core.gang_pods import JOB_SET, KUEUE, LWS, VOLCANO, cluster, job, pod, start


def test_a_job_set_has_the_pods_of_all_its_jobs_with_gpus() -> None:
    replay, of = cluster(), {"jobset.sigs.k8s.io/replicatedjob-replicas": "2"}
    name = "jobset.sigs.k8s.io/replicatedjob-name"
    for uid, part in (("x", "leader"), ("y", "workers"), ("z", "workers")):
        size = 1 if part == "leader" else 2
        labels = JOB_SET | {name: part} | (of if part == "workers" else {})
        replay.see_object(Kind.JOBS, job(size, labels, uid=uid), at=5)
    for i, each in enumerate("abcde"):
        start(replay, pod(each, JOB_SET), 10 + i)

    assert replay.spans("a") == [("starting", 8, 10), ("gang_wait", 10, 14), ("running", 14, None)]


def test_the_leader_of_a_leader_worker_set_counts_only_if_it_has_gpus() -> None:
    size = {"leaderworkerset.sigs.k8s.io/size": "3"}
    without, with_leader = cluster(), cluster()
    with_leader.see(replace(pod("s-0", LWS), annotations=size), at=5)
    for i in (1, 2):
        start(without, replace(pod(f"s-0-{i}", LWS), annotations=size), 10 * i)
        start(with_leader, replace(pod(f"s-0-{i}", LWS), annotations=size), 10 * i)
    start(with_leader, replace(pod("s-0", LWS), annotations=size), 50)

    assert without.spans("s-0-1")[1:] == [("gang_wait", 10, 20), ("running", 20, None)]
    assert with_leader.spans("s-0-1")[1:] == [("gang_wait", 10, 50), ("running", 50, None)]


def test_a_gang_runs_once_as_many_pods_as_it_states_do() -> None:
    replay = cluster()
    pods = [replace(pod(name, VOLCANO), annotations=stated("2")) for name in "abc"]
    replay.see(*pods, at=5)
    start(replay, pods[0], 10)
    start(replay, pods[1], 20)

    assert replay.spans("a")[1:] == [("gang_wait", 10, 20), ("running", 20, None)]


def stated(size: str) -> Mapping[str, str]:
    return {
        "scheduling.k8s.io/group-name": "g",
        "scheduling.volcano.sh/group-min-member": size,
    }


def test_other_members_than_those_with_gpus_are_not_waited_for() -> None:
    replay = cluster()
    pods = [replace(pod(name, VOLCANO), annotations=stated("8")) for name in "ab"]
    replay.see(*pods, at=5)
    start(replay, pods[0], 10)
    start(replay, pods[1], 20)

    assert replay.spans("a")[1:] == [("gang_wait", 10, 20), ("running", 20, None)]


def test_volcano_groups_of_one_and_served_groups_are_no_gangs() -> None:
    replay = cluster()
    alone = [replace(pod(name, {}), annotations=stated("1")) for name in "ab"]
    served = [replace(pod(name, KUEUE), annotations={"kueue.x-k8s.io/pod-group-serving": "true"}) for name in "cd"]
    replay.see(*alone, *served, at=5)
    start(replay, alone[0], 10)
    start(replay, served[0], 10)

    assert replay.by_state(20) == {"starting": 4, "running": 20}


@pytest.mark.parametrize("size", ["9223372036854775807", "-1", "NaN", "100000"])
def test_sizes_that_anyone_may_write_do_not_matter_beyond_the_pods_that_exist(size: str) -> None:
    replay = cluster()
    pods = [replace(pod(name, KUEUE), annotations={"kueue.x-k8s.io/pod-group-total-count": size}) for name in "ab"]
    replay.see(*pods, at=5)
    start(replay, pods[0], 10)
    start(replay, pods[1], 20)

    assert replay.spans("a")[1:] == [("gang_wait", 10, 20), ("running", 20, None)]

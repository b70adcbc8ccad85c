"""Pods whose gang is incomplete hold GPUs for nothing until all of it runs."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import msgspec
import pytest

from gputally.model.kube import Job, Kind
from tests.core.manifests import Json, NodeForm, PodForm, instant
from tests.core.replay import Replay

LWS = {"leaderworkerset.sigs.k8s.io/name": "s", "leaderworkerset.sigs.k8s.io/group-index": "0"}
TRAINING = {"training.kubeflow.org/job-name": "t"}
VOLCANO = {"volcano.sh/job-name": "v"}
KUEUE = {"kueue.x-k8s.io/pod-group-name": "k"}
COSCHEDULING = {"scheduling.x-k8s.io/pod-group": "c"}
JOB = {"batch.kubernetes.io/job-name": "b", "batch.kubernetes.io/controller-uid": "job"}
JOB_SET = {"jobset.sigs.k8s.io/jobset-name": "js", "jobset.sigs.k8s.io/jobset-uid": "u"}
RAY = {"ray.io/cluster": "r"}
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "b", "uid": "job", "controller": True}


def cluster() -> Replay:
    replay = Replay()
    replay.see(NodeForm(gpus=64), at=0)
    return replay


def pod(name: str, labels: Mapping[str, str], *, created: int = 5, **annotations: str) -> PodForm:
    owners = (OWNER,) if labels is JOB else ()
    return PodForm(name=name, labels=labels, created=created, owners=owners, annotations=annotations)


def running(form: PodForm, at: int) -> PodForm:
    return replace(form, node="n1", scheduled=at - 2, started=at, version=form.version + 1)


def start(replay: Replay, form: PodForm, at: int) -> PodForm:
    replay.see(running(form, at), at=at)
    return running(form, at)


def job(
    size: int, labels: Mapping[str, str] | None = None, *, uid: str = "job", created: int = 1, **spec: object
) -> Job:
    template = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
    numbers = {"parallelism": size, "completions": size, "completionMode": "Indexed"}
    meta = {"name": "b", "namespace": "ml", "uid": uid, "labels": labels or {}, "creationTimestamp": instant(created)}
    manifest: Json = {"metadata": meta, "spec": {"template": template} | numbers | spec}
    return msgspec.convert(manifest, Job)


@pytest.mark.parametrize("labels", [TRAINING, VOLCANO, KUEUE, COSCHEDULING, JOB_SET])
def test_running_pods_wait_until_the_last_one_that_exists_runs(labels: Mapping[str, str]) -> None:
    replay, pods = cluster(), [pod(name, labels) for name in "abc"]
    replay.see(*pods, at=5)
    for form, at in zip(pods, (10, 20, 35), strict=True):
        start(replay, form, at)

    assert replay.spans("a") == [("starting", 8, 10), ("gang_wait", 10, 35), ("running", 35, None)]
    assert replay.spans("b") == [("starting", 18, 20), ("gang_wait", 20, 35), ("running", 35, None)]
    assert replay.spans("c") == [("starting", 33, 35), ("running", 35, None)]
    assert replay.by_state(40) == {"starting": 6, "gang_wait": 40, "running": 15}


@pytest.mark.parametrize("labels", [{}, RAY, JOB, {"app": "web"}])
def test_pods_that_work_alone_never_wait(labels: Mapping[str, str]) -> None:
    replay, pods = cluster(), [pod(name, labels) for name in "ab"]
    replay.see(*pods, at=5)
    start(replay, pods[0], 10)

    assert replay.spans("a") == [("starting", 8, 10), ("running", 10, None)]


def test_an_indexed_job_waits_for_all_of_its_pods_also_those_that_do_not_exist() -> None:
    replay = cluster()
    replay.see_object(Kind.JOBS, job(3), at=5)
    first, second = (start(replay, pod(name, JOB), 10) for name in "ab")
    assert replay.by_state(30) == {"starting": 4, "gang_wait": 40}
    start(replay, pod("c", JOB, created=25), 30)

    assert replay.spans("a") == [("starting", 8, 10), ("gang_wait", 10, 30), ("running", 30, None)]
    assert first.labels == second.labels


@pytest.mark.parametrize(
    "spec",
    [
        {"completionMode": "NonIndexed"},
        {"completions": 9},
        {"completions": None},
        {"backoffLimitPerIndex": 1},
        {"parallelism": 1, "completions": 1},
    ],
)
def test_a_job_whose_pods_work_for_themselves_is_no_gang(spec: Json) -> None:
    replay = cluster()
    replay.see_object(Kind.JOBS, job(3, **spec), at=5)
    start(replay, pod("a", JOB), 10)

    assert replay.spans("a") == [("starting", 8, 10), ("running", 10, None)]


def test_a_job_that_is_known_after_its_pods_run_is_a_gang_all_the_same() -> None:
    replay = cluster()
    start(replay, pod("a", JOB), 10)
    assert replay.spans("a")[-1] == ("running", 10, None)
    replay.see_object(Kind.JOBS, job(2), at=12)

    assert replay.spans("a")[-1] == ("gang_wait", 10, None)


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


def test_a_complete_gang_stays_complete_when_it_loses_a_pod() -> None:
    replay, pods = cluster(), [pod(name, TRAINING) for name in "ab"]
    replay.see(*pods, at=5)
    start(replay, pods[0], 10)
    last = start(replay, pods[1], 20)
    replay.see(replace(last, deleted=40, marked=40, version=3), at=40)
    replay.lose(replace(last, deleted=40, marked=40, version=4), at=45)
    start(replay, pod("c", TRAINING, created=46), 60)

    assert replay.spans("a")[1:] == [("gang_wait", 10, 20), ("running", 20, None)]
    assert replay.spans("c")[1:] == [("running", 60, None)]


def test_a_gang_that_never_was_complete_waited_all_its_time() -> None:
    replay, pods = cluster(), [pod(name, TRAINING) for name in "ab"]
    replay.see(*pods, at=5)
    first = start(replay, pods[0], 10)
    replay.see(replace(first, deleted=40, version=3), at=40)
    replay.lose(replace(first, deleted=40, version=4), at=45)
    replay.lose(replace(pods[1], deleted=46, grace=0, version=5), at=46)

    assert replay.spans("a") == [("starting", 8, 10), ("gang_wait", 10, 40), ("terminating", 40, 45)]
    assert replay.fleet.pods.gangs.known == {}
    assert replay.fleet.pods.gangs.members == {}


def test_pods_wait_no_longer_for_one_that_is_given_up() -> None:
    replay, pods = cluster(), [pod(name, TRAINING) for name in "abc"]
    replay.see(*pods, at=5)
    start(replay, pods[0], 10)
    start(replay, pods[1], 20)
    replay.lose(replace(pods[2], deleted=50, grace=0, version=5), at=50)

    assert replay.spans("a")[1:] == [("gang_wait", 10, 50), ("running", 50, None)]


def test_a_pod_that_succeeds_before_the_others_start_did_not_fail_them() -> None:
    replay = cluster()
    replay.see_object(Kind.JOBS, job(2), at=5)
    first = start(replay, pod("a", JOB), 10)
    replay.see(replace(first, phase="Succeeded", finished=20, version=3), at=20)
    start(replay, pod("b", JOB), 30)

    assert replay.spans("a")[1:] == [("gang_wait", 10, 20)]
    assert replay.spans("b")[1:] == [("running", 30, None)]


def test_a_restarted_job_set_waits_again() -> None:
    replay = cluster()
    for attempt, at in ((0, 10), (1, 50)):
        labels = JOB_SET | {"jobset.sigs.k8s.io/restart-attempt": str(attempt)}
        pods = [pod(f"{name}{attempt}", labels, created=at - 5) for name in "ab"]
        replay.see(*pods, at=at - 5)
        start(replay, pods[0], at)
        start(replay, pods[1], at + 10)

    assert replay.spans("a0")[1:] == [("gang_wait", 10, 20), ("running", 20, None)]
    assert replay.spans("a1")[1:] == [("gang_wait", 50, 60), ("running", 60, None)]


def test_a_resumed_job_waits_again() -> None:
    replay = cluster()
    replay.see_object(Kind.JOBS, job(2), at=5)
    for form in [start(replay, pod(name, JOB), 10) for name in "ab"]:
        replay.lose(replace(form, deleted=30, grace=0, version=5), at=30)
    start(replay, pod("c", JOB, created=40), 50)

    assert replay.spans("c")[1:] == [("gang_wait", 50, None)]


def test_a_gang_goes_on_over_a_restart() -> None:
    replay, pods = cluster(), [pod(name, TRAINING) for name in "ab"]
    replay.see_object(Kind.JOBS, job(3), at=4)
    replay.see(*pods, pod("x", JOB), at=5)
    start(replay, pods[0], 10)
    start(replay, pod("x", JOB), 10)
    replay.scrape(12)
    replay.restart()
    start(replay, pods[1], 20)
    replay.scrape(25)
    replay.restart()
    start(replay, pod("y", JOB), 30)
    start(replay, pod("z", JOB), 40)
    replay.scrape(50)

    assert replay.spans("a")[1:] == [("gang_wait", 10, 20), ("running", 20, None)]
    assert replay.spans("x")[1:] == [("gang_wait", 10, 40), ("running", 40, None)]


def test_pods_that_ran_before_the_ledger_knew_gangs_did_not_wait() -> None:
    replay, pods = cluster(), [pod(name, TRAINING) for name in "ab"]
    old = [start(replay, form, 10) for form in [pods[0], pod("x", JOB)]]
    replay.flush()
    replay.memory.documents["gangs"].clear()
    for uid, kept in replay.memory.pods.items():
        replay.memory.pods[uid] = msgspec.json.encode({**msgspec.json.decode(kept), "gang_until_us": None})
    replay.restart()
    replay.see_object(Kind.JOBS, job(2), at=20)
    replay.see(*old, pods[1], at=30)
    start(replay, pods[1], 40)
    replay.scrape(50)

    assert [replay.spans(name)[-1] for name in "axb"] == [
        ("running", 10, None),
        ("running", 10, None),
        ("running", 40, None),
    ]


def test_deleted_gangs_leave_nothing() -> None:
    replay, labels = cluster(), [TRAINING, JOB, KUEUE]
    replay.see_object(Kind.JOBS, job(2), at=5)
    for form in list(ended(replay, labels)):
        replay.lose(replace(form, deleted=30, grace=0, version=9), at=30)
    replay.lose_object(Kind.JOBS, job(2), at=40)
    gangs = replay.fleet.pods.gangs

    assert (gangs.known, gangs.members, gangs.partial, gangs._gang_of, gangs._jobs.awaiting_uids) == (
        {},
        {},
        {},
        {},
        set(),
    )


def ended(replay: Replay, labels: list[Mapping[str, str]]) -> Iterator[PodForm]:
    for i, each in enumerate(labels):
        for j in range(2):
            yield start(replay, pod(f"p{i}{j}", each), 10 + j)

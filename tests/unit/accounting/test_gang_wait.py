"""Pods whose gang is incomplete hold GPUs for nothing until all of it runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec
import pytest

from gputally.model.kube.kinds import Kind
from tests.core.gang_pods import (
    COSCHEDULING,
    JOB,
    JOB_SET,
    KUEUE,
    RAY,
    TRAINING,
    VOLCANO,
    cluster,
    job,
    pod,
    start,
)
from tests.core.manifests import Json, PodForm
from tests.core.replay import Replay


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


def test_a_pod_that_is_observed_late_was_waited_for_all_the_same() -> None:
    replay = cluster()
    start(replay, pod("a", TRAINING), 10)
    assert replay.spans("a")[1:] == [("running", 10, None)]
    replay.see(pod("b", TRAINING, created=9), at=12)
    assert replay.spans("a")[1:] == [("gang_wait", 10, None)]
    start(replay, pod("b", TRAINING, created=9), 20)

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


def test_a_job_outlives_its_pods_until_a_new_process_has_listed_the_jobs() -> None:
    replay, first = cluster(), pod("a", JOB)
    replay.see_object(Kind.JOBS, job(2), at=4)
    replay.see(first, at=5)
    replay.flush()
    replay.restart()
    replay.lose(replace(first, deleted=8, grace=0, version=4), at=8)
    second = start(replay, pod("b", JOB, created=9), 20)
    assert replay.spans("b")[1:] == [("gang_wait", 20, None)]

    replay.lose(replace(second, deleted=30, grace=0, version=5), at=30)
    replay.relist_objects(Kind.JOBS, at=40)
    assert replay.fleet.pods.gangs.known == {}


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
    replay.relist_objects(Kind.JOBS, job(2), at=35)
    replay.lose_object(Kind.JOBS, job(2), at=40)
    gangs = replay.fleet.pods.gangs

    assert not any((gangs.known, gangs.members, gangs.partial, gangs._gang_of, gangs._jobs.awaiting_uids))


def ended(replay: Replay, labels: Sequence[Mapping[str, str]]) -> Iterator[PodForm]:
    for i, each in enumerate(labels):
        for j in range(2):
            yield start(replay, pod(f"p{i}{j}", each), 10 + j)

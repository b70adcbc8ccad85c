"""The pods of a job that its queue stopped for another workload are one preemption of the job."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from gputally.model.disruptions import QUEUE_CLOSED_US, Victim
from gputally.model.kube.kinds import Kind
from gputally.model.rules import Rules
from gputally.model.units import GPU, US_PER_SECOND
from tests.core.kueue import PYTORCH, evicted, kueue_workload, preempted_for
from tests.core.manifests import Json, NodeForm, PodForm
from tests.core.replay import Replay
from tests.unit.accounting import test_job_preemptions
from tests.unit.accounting.test_job_preemptions import sets
from tests.unit.accounting.test_lost_work import loss
from tests.unit.accounting.test_queue_preemptors import DELETED, EVICTED, HIGH_UID, PREEMPTED, VICTIM, WAITING, says

GANG = VICTIM, replace(VICTIM, name="b")
MARK: Json = {"mark_type": "TerminationTarget", "mark": "WorkloadEvictedDueToPreempted"}
CLOSED = QUEUE_CLOSED_US // US_PER_SECOND


def running(*forms: PodForm, is_watched: bool = True) -> Replay:
    replay = Replay(rules=Rules(watched=(Kind.KUEUE_WORKLOADS,) if is_watched else ()))
    replay.see(NodeForm(name="n1", gpus=8), at=1)
    replay.see(*(forms or GANG), at=100)
    return replay


def delete(replay: Replay, *forms: PodForm, at: int = DELETED) -> None:
    for form in forms or GANG:
        replay.see(replace(form, deleted=at, version=2), at=at)


def end(replay: Replay, form: PodForm, *, at: int) -> None:
    replay.lose(replace(form, deleted=DELETED, phase="Failed", finished=at, exit_code=143, version=3), at=at + 1)


def together(replay: Replay) -> set[frozenset[str]]:
    """The names of the pods of each preemption of a job; all are in one, which is that of one of the victims."""
    assert all(each.job_preemption for each in records(replay).values())
    return test_job_preemptions.together(replay)


def records(replay: Replay) -> Mapping[str, Victim]:
    return {each.victim_name: each for each in replay.fleet.disrupted.victims.known.values()}


def test_pods_that_stop_long_after_each_other_are_one_from_their_deletion_on() -> None:
    replay = running()
    says(replay, WAITING, PREEMPTED, at=EVICTED)
    delete(replay)

    assert together(replay) == sets("a b")
    assert replay.scrape(DELETED + 5).preempting.keys() == {("low", "high")}
    for form, at in zip(GANG, (DELETED + 1, DELETED + 4 * CLOSED), strict=True):
        end(replay, form, at=at)
    assert together(replay) == sets("a b")
    assert {each.decided_us for each in records(replay).values()} == {records(replay)["a"].decided_us}


def test_it_is_one_time_of_a_repeat_victim() -> None:
    replay = running()
    says(replay, WAITING, PREEMPTED, at=EVICTED)
    delete(replay)
    for form, at in zip(GANG, (DELETED + 1, DELETED + 4 * CLOSED), strict=True):
        end(replay, form, at=at)

    [job] = replay.fleet.disrupted.disruptions.repeat_victims.known.values()
    assert job.times_us == (records(replay)["a"].decided_us,)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("are_gone", [False, True])
def test_a_workload_that_is_observed_late_makes_one_of_its_pods(*, are_gone: bool, restarts: bool) -> None:
    replay = running()
    delete(replay)
    if are_gone:
        for form in GANG:
            end(replay, form, at=DELETED + 1)
    if restarts:
        replay.flush()
        replay.restart()
    replay.see(NodeForm(name="n2", gpus=8), at=DELETED + 3 * CLOSED)

    says(replay, WAITING, PREEMPTED, at=DELETED + 3 * CLOSED)
    replay.scrape(DELETED + 3 * CLOSED + 6)

    assert together(replay) == sets("a b")


def test_a_pod_that_is_deleted_once_the_record_may_be_delivered_begins_a_new_one() -> None:
    a, b, c = (replace(VICTIM, name=name) for name in "abc")
    replay = running(a, b, c)
    says(replay, WAITING, PREEMPTED, at=EVICTED)

    delete(replay, a)
    delete(replay, b, at=DELETED + CLOSED - 1)
    delete(replay, c, at=DELETED + CLOSED)

    assert together(replay) == sets("a b", "c")


def test_what_a_killed_process_had_not_written_is_found_again_and_what_it_had_stays() -> None:
    a, b = GANG
    replay = running()
    says(replay, WAITING, PREEMPTED, at=EVICTED)
    replay.flush()
    delete(replay, a)
    replay.restart()
    delete(replay, a)
    replay.flush()
    first = records(replay)["a"]
    replay.restart()
    delete(replay, b, at=DELETED + 50)

    assert together(replay) == sets("a b")
    assert records(replay)["a"] == first
    assert {each.began_us for each in records(replay).values()} == {first.began_us}


def test_the_next_preemption_of_the_same_job_is_another_one() -> None:
    replay = running()
    says(replay, WAITING, PREEMPTED, at=EVICTED)
    delete(replay)
    for form in GANG:
        end(replay, form, at=DELETED + 1)
    again = replace(VICTIM, name="c", created=DELETED + 20, scheduled=DELETED + 21, started=DELETED + 22)
    replay.see(again, at=DELETED + 22)

    other = preempted_for(HIGH_UID.replace("2", "3"))
    says(replay, kueue_workload(evicted(DELETED + 30, message=other)), at=DELETED + 30)
    delete(replay, again, at=DELETED + 31)

    assert together(replay) == sets("a b", "c")


def test_a_first_pod_that_had_ended_by_itself_leaves_the_record_to_the_others() -> None:
    a, b = GANG
    c = replace(VICTIM, name="c")
    replay = running(a, b, c)
    replay.fleet.disrupted.disruptions.announces = True
    says(replay, WAITING, PREEMPTED, at=EVICTED)
    delete(replay, a, b)
    replay.lose(replace(a, deleted=DELETED, finished=DELETED - 60, phase="Succeeded", version=3), at=DELETED + 3)
    replay.flush()
    replay.restart()

    delete(replay, c, at=DELETED + 5)

    assert together(replay) == sets("b c")
    assert {each.job_preemption for each in records(replay).values()} == {"uid-a"}
    assert all(each.announced for each in records(replay).values())


@pytest.mark.parametrize("is_watched", [False, True])
def test_pods_that_kueue_marks_one_after_the_other_for_a_workload_are_one(*, is_watched: bool) -> None:
    forms = [replace(VICTIM, name=name, owners=(), labels={"kueue.x-k8s.io/pod-group-name": "g"}) for name in "abc"]
    replay = running(*forms, is_watched=is_watched)

    for form, at in zip(forms, (DELETED, DELETED + 50, DELETED + 50), strict=True):
        uid = HIGH_UID if form.name != "c" else HIGH_UID.replace("2", "3")
        delete(replay, replace(form, marked=at, mark_message=preempted_for(uid), **MARK), at=at)

    assert together(replay) == sets("a b", "c")


def test_pods_of_different_jobs_that_lose_their_gpus_to_the_same_workload_are_apart() -> None:
    other = replace(VICTIM, name="b", owners=(PYTORCH | {"name": "other", "uid": "uid-other"},))
    replay = running(VICTIM, other)
    message = preempted_for(HIGH_UID)
    second = kueue_workload(
        evicted(EVICTED, message=message),
        name="wl-2",
        uid="uid-2",
        owner=PYTORCH | {"name": "other", "uid": "uid-other"},
    )
    says(replay, WAITING, PREEMPTED, second, at=EVICTED)
    delete(replay, VICTIM, other)

    assert together(replay) == sets("a", "b")


def test_evictions_for_other_reasons_are_no_preemptions_of_jobs() -> None:
    replay = running()
    says(replay, kueue_workload(evicted(EVICTED, reason="PodsReadyTimeout")), at=EVICTED)
    delete(replay)

    assert {each.job_preemption for each in records(replay).values()} == {""}


JOB_LABELS = {"batch.kubernetes.io/job-name": "train", "batch.kubernetes.io/controller-uid": "uid-train"}


@pytest.mark.parametrize(
    ("owner", "labels"),
    [
        (PYTORCH, {"training.kubeflow.org/job-name": "train"}),
        (PYTORCH | {"apiVersion": "batch/v1", "kind": "Job"}, JOB_LABELS),
    ],
)
def test_what_a_job_lost_that_its_queue_stopped_is_final_once_all_pods_have_ended(
    owner: Json, labels: dict[str, str]
) -> None:
    a, b = (replace(form, owners=(owner,), labels=labels) for form in GANG)
    replay = running(a, b)
    says(replay, WAITING, kueue_workload(evicted(EVICTED), owner=owner), at=EVICTED)
    delete(replay, a, b)
    end(replay, a, at=DELETED + 1)
    replay.scrape(DELETED + 10)
    assert not loss(replay, "uid-a").is_final

    end(replay, b, at=DELETED + 11)
    replay.scrape(DELETED + 20)

    for uid, ran in (("uid-a", DELETED + 1 - 100), ("uid-b", DELETED + 11 - 100)):
        found = loss(replay, uid)
        assert (found.is_final, found.members, found.stalled_gpu_time) == (True, 1, 0)
        assert found.gpu_time == 2 * GPU * ran * US_PER_SECOND

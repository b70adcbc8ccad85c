"""Restarts of groups that a counter, or a suspended Job, shows before all pods have successors."""

from dataclasses import replace

import msgspec

from gputally.model.kube.kinds import Kind
from gputally.model.kube.workloads import Job
from gputally.model.observation import Upserted
from tests.core.manifests import Json, instant, us
from tests.core.replay import Replay
from tests.unit.accounting.test_lost_groups import (
    GROUP_END,
    JOB,
    RAN_MEMBER,
    RAN_VICTIM,
    REQUESTED,
    START,
    VOLCANO,
    cluster,
    gang,
    lost,
    preempt,
    stop,
    successor,
)
from tests.unit.accounting.test_lost_work import loss


def test_a_restart_that_a_volcano_job_counts_is_enough_while_successors_are_missing() -> None:
    version = "volcano.sh/job-version"
    victim, *others = [replace(each, annotations={version: "3"}) for each in gang(VOLCANO, 3)]
    replay = cluster([victim, *others])
    preempt(replay, victim)
    stop(replay, *others)
    assert lost(replay, REQUESTED + 50) == RAN_VICTIM

    replay.see(replace(successor(victim), annotations={version: "4"}), at=REQUESTED + 60)

    assert lost(replay, REQUESTED + 70) == RAN_VICTIM + 2 * RAN_MEMBER
    assert loss(replay, "uid-w0").is_final


def test_a_retry_of_a_part_of_a_volcano_job_is_no_restart_of_the_others() -> None:
    victim, *others = [replace(each, annotations={"volcano.sh/job-version": "3"}) for each in gang(VOLCANO, 3)]
    replay = cluster([victim, *others])
    preempt(replay, victim)
    retried = {"volcano.sh/job-version": "3", "volcano.sh/job-retry-count": "1"}
    replay.see(replace(successor(victim, started=1200), annotations=retried), at=1200)

    assert lost(replay, 1210) == RAN_VICTIM


SUSPENDED: Json = {
    "type": "Suspended",
    "status": "True",
    "reason": "JobSuspended",
    "lastTransitionTime": instant(REQUESTED + 2),
}


def see_job(replay: Replay, *conditions: Json, at: int) -> None:
    """The Job of the gang."""
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    template = {"metadata": {}, "spec": {"containers": [{"name": "main", "resources": resources}]}}
    manifest = {
        "metadata": {"name": "train", "namespace": "ml", "uid": "9", "creationTimestamp": instant(90)},
        "spec": {"template": template},
        "status": {"conditions": list(conditions)},
    }
    job = msgspec.convert(manifest, Job)
    replay.apply(Upserted(kind=Kind.JOBS, object=job, at_us=us(at), since_us=us(at)))


def test_a_job_that_its_queue_evicts_loses_the_work_of_all_pods_while_it_is_suspended() -> None:
    victim, *others = gang(JOB, 3)
    replay = cluster([victim, *others])
    see_job(replay, at=START)
    preempt(replay, victim)
    replay.see(successor(victim, at=REQUESTED + 1), at=REQUESTED + 1)
    see_job(replay, SUSPENDED, at=REQUESTED + 3)
    stop(replay, *others)

    assert lost(replay, GROUP_END + 10) == RAN_VICTIM + 2 * RAN_MEMBER
    assert loss(replay, "uid-w0").members == 3
    assert loss(replay, "uid-w0").is_final


def test_a_suspension_counts_when_the_job_has_resumed_and_after_a_restart() -> None:
    victim, *others = gang(JOB, 3)
    replay = cluster([victim, *others])
    preempt(replay, victim)
    see_job(replay, SUSPENDED, at=REQUESTED + 3)
    see_job(replay, SUSPENDED | {"status": "False", "lastTransitionTime": instant(1035)}, at=1035)
    replay.scrape(1036)
    replay.restart(at=1037)
    stop(replay, *others)

    assert lost(replay, GROUP_END + 10) == RAN_VICTIM + 2 * RAN_MEMBER


def test_a_suspension_before_the_preemption_restarts_nothing() -> None:
    """A queue creates its jobs suspended."""
    victim, *others = gang(JOB, 3)
    replay = cluster([victim, *others])
    see_job(replay, SUSPENDED | {"lastTransitionTime": instant(90)}, at=91)
    preempt(replay, victim)
    replay.see(successor(victim, started=1200), at=1200)

    assert lost(replay, 1210) == RAN_VICTIM

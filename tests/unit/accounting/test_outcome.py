"""How pods ended, by what the API shows of them, in any order."""

from dataclasses import replace
from itertools import permutations

import pytest

from gputally.accounting.facts.outcome import outcome_of
from gputally.model.allocation import Outcome, Result
from gputally.model.kube.kinds import Kind
from gputally.model.pod_record import PodRecord
from tests.core.manifests import PodForm, as_pod, instant
from tests.core.one_pod import FINISHED, NODE, RUNNING, cluster

DELETED = replace(RUNNING, deleted=20)
PREEMPTED = replace(DELETED, marked=20)
FAILED = replace(FINISHED, phase="Failed", exit_code=3)


def ended(*forms: PodForm, lost_at: int | None = None) -> PodRecord:
    """The pod's last revision after these forms, one each second from 30 s on, and its deletion."""
    replay = cluster()
    for at, form in enumerate(forms, 30):
        replay.see(replace(form, version=at), at=at)
    if lost_at is not None:
        replay.lose(forms[-1], at=lost_at)
    replay.scrape(100)
    return replay.memory.revisions["uid-a"]


@pytest.mark.parametrize(
    ("forms", "lost_at", "outcome"),
    [
        ((RUNNING,), None, Outcome.RUNNING),
        ((DELETED,), None, Outcome.RUNNING),
        ((FINISHED,), None, Outcome.SUCCEEDED),
        ((FINISHED,), 60, Outcome.SUCCEEDED),
        ((FAILED,), None, Outcome.FAILED),
        ((replace(RUNNING, phase="Failed", reason="Evicted"),), None, Outcome.FAILED),
        ((RUNNING,), 60, Outcome.DELETED),
        ((DELETED,), 60, Outcome.DELETED),
        ((DELETED, replace(FAILED, deleted=20, finished=22, exit_code=143)), 60, Outcome.DELETED),
        ((DELETED, replace(FINISHED, deleted=20, finished=22)), 60, Outcome.DELETED),
        ((PREEMPTED,), 60, Outcome.PREEMPTED),
        ((PREEMPTED, replace(FINISHED, deleted=20, marked=20, finished=22)), 60, Outcome.PREEMPTED),
        ((replace(RUNNING, phase="Failed", marked=25, mark="DeletionByPodGC"),), 60, Outcome.LOST),
    ],
)
def test_the_outcome_of_a_pod(forms: tuple[PodForm, ...], lost_at: int | None, outcome: Outcome) -> None:
    """A container that exits with 0 on SIGTERM has not succeeded: it was told to stop."""
    assert outcome_of(ended(*forms, lost_at=lost_at)) is outcome


def test_the_deletion_of_a_finished_pod_does_not_change_its_outcome() -> None:
    """Its deletion is requested in the second of its end, but a watch has shown that it ended before."""
    assert ended(FINISHED, replace(FINISHED, deleted=17), lost_at=60).result == Result("Succeeded", "", 0, is_own=True)


def test_a_pod_whose_end_was_only_seen_with_its_deletion_succeeded_if_the_deletion_was_later() -> None:
    assert outcome_of(ended(RUNNING, replace(FINISHED, deleted=25))) is Outcome.SUCCEEDED
    assert outcome_of(ended(RUNNING, replace(FINISHED, deleted=18))) is Outcome.DELETED


def test_a_pod_of_a_node_that_is_gone_is_lost() -> None:
    replay = cluster()
    replay.see(RUNNING, at=30)
    replay.lose(NODE, at=50)
    replay.scrape(100)

    assert outcome_of(replay.memory.revisions["uid-a"]) is Outcome.LOST


def test_a_pod_that_vanished_has_an_unknown_outcome() -> None:
    replay = cluster()
    replay.see(RUNNING, at=30)
    replay.relist(Kind.PODS, at=60, since=40)
    replay.scrape(100)

    assert outcome_of(replay.memory.revisions["uid-a"]) is Outcome.UNKNOWN


def test_the_exit_code_is_that_of_the_container_that_failed_first() -> None:
    manifest = replace(FAILED, inits=((11, 12),)).manifest()
    status = manifest["status"]
    [main] = status["containerStatuses"]
    later = {"exitCode": 9, "reason": "OOMKilled", "finishedAt": instant(40)}
    status["containerStatuses"] = [{"name": "side", "state": {"terminated": later}}, main]
    replay = cluster()
    replay.see_pod(as_pod(manifest), at=50)
    replay.scrape(100)

    assert replay.memory.revisions["uid-a"].result == Result("Failed", "Error", 3, is_own=True)


def test_the_result_does_not_depend_on_the_order_of_events() -> None:
    """PodGC sets the phase of a pod whose kubelet returns later with the exit code."""
    collected = replace(RUNNING, phase="Failed", marked=25, mark="DeletionByPodGC")
    late = replace(FAILED, marked=25, mark="DeletionByPodGC", deleted=26)

    found = {ended(*order).result for order in permutations((RUNNING, collected, late))}

    assert found == {Result("Failed", "Error", 3, is_own=True)}


def test_an_outcome_is_a_revision_although_no_segment_changes() -> None:
    """Its node ends first; that its kubelet reported a result at the same time becomes known later."""
    replay = cluster()
    replay.see(RUNNING, at=30)
    replay.lose(NODE, at=50)
    replay.flush()
    before = replay.memory.revisions["uid-a"]
    replay.see(replace(RUNNING, phase="Failed", marked=60, mark="DeletionByPodGC", version=60), at=60)
    replay.flush()
    after = replay.memory.revisions["uid-a"]

    assert (before.result, after.result) == (None, Result("Failed", "DeletionByPodGC", None, is_own=True))
    assert after.revision > before.revision
    assert after.segments == before.segments

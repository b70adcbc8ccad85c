"""The GPU-time of jobs: when it counts, and under which outcome."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from msgspec import structs

from gputally.accounting.totals.total import Total
from gputally.model.kube.kinds import Kind
from gputally.model.kube.workloads import Job
from gputally.model.observation import Deleted, RelistFinished, RelistStarted, Upserted
from gputally.model.rules import Rules, TenantRule, TenantSource
from tests.core.manifests import NodeForm, PodForm, instant, us
from tests.core.memory import Memory
from tests.core.replay import Replay

NODE = NodeForm(name="n1", capacity={"nvidia.com/gpu": 8})
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-train", "controller": True}
RULES = Rules(tenants=(TenantRule(source=TenantSource.POD_LABEL, key="team"),))


def job(ended: str = "", at: int = 0) -> Job:
    conditions = [{"type": ended, "status": "True", "lastTransitionTime": instant(at)}] if ended else []
    meta = {"name": "train", "namespace": "ml", "uid": "job-train"}
    return msgspec.convert({"metadata": meta, "status": {"conditions": conditions}}, Job)


def pod(name: str, *, gpus: int = 1, team: str = "red", owners: tuple[dict[str, Any], ...] = (OWNER,)) -> PodForm:
    form = PodForm(name=name, created=10, node="n1", scheduled=10, started=10, gpus=gpus, tier="gold", owners=owners)
    return replace(form, labels={"team": team})


def ended(form: PodForm, at: int, *, phase: str = "Succeeded") -> PodForm:
    return replace(form, phase=phase, finished=at, exit_code=int(phase == "Failed"), version=form.version + 1)


def see_job(replay: Replay, found: Job, *, at: int) -> None:
    replay.apply(Upserted(kind=Kind.JOBS, object=found, at_us=us(at), since_us=us(at)))


def lose_job(replay: Replay, *, at: int) -> None:
    replay.apply(Deleted(kind=Kind.JOBS, object=job(), at_us=us(at), since_us=us(at)))


def list_jobs(replay: Replay, *jobs: Job, at: int) -> None:
    replay.apply(RelistStarted(kind=Kind.JOBS, at_us=us(at)))
    for each in jobs:
        see_job(replay, each, at=at)
    replay.apply(RelistFinished(kind=Kind.JOBS, version="1", at_us=us(at), since_us=us(at), as_of_us=us(at)))


def counted(replay: Replay) -> Mapping[tuple[str, ...], Fraction]:
    replay.flush()  # compares the sum of ended and open jobs with the allocated time
    return replay.gpu_seconds(10_000, Total.JOB)


@pytest.fixture
def replay() -> Replay:
    replay = Replay(rules=RULES)
    replay.see(NODE, at=1)
    return replay


def test_a_job_counts_the_gpu_seconds_of_all_pods_once_it_is_complete(replay: Replay) -> None:
    see_job(replay, job(), at=5)
    replay.see(pod("a"), pod("b", gpus=2), at=10)
    replay.see(ended(pod("a"), 40, phase="Failed"), at=40)
    replay.lose(ended(pod("a"), 40, phase="Failed"), at=45)
    replay.see(ended(pod("b", gpus=2), 110), at=110)
    assert counted(replay) == {}

    see_job(replay, job("Complete", 111), at=111)
    assert counted(replay) == {("gold", "red", "succeeded"): 30 + 200}


def test_a_job_that_ends_before_its_pods_counts_when_they_release_their_gpus(replay: Replay) -> None:
    see_job(replay, job(), at=5)
    replay.see(pod("a"), at=10)
    see_job(replay, job("Failed", 50), at=50)
    assert counted(replay) == {}

    replay.see(ended(pod("a"), 80), at=80)
    assert counted(replay) == {("gold", "red", "failed"): 70}


def test_pods_of_different_tenants_count_for_each(replay: Replay) -> None:
    see_job(replay, job(), at=5)
    replay.see(pod("a"), pod("b", team="blue"), at=10)
    replay.see(ended(pod("a"), 40), ended(pod("b", team="blue"), 60), at=60)
    see_job(replay, job("Complete", 60), at=60)

    assert counted(replay) == {("gold", "red", "succeeded"): 30, ("gold", "blue", "succeeded"): 50}


def test_a_pod_that_no_job_controls_counts_at_its_end_under_its_own_outcome(replay: Replay) -> None:
    form = pod("a", owners=())
    replay.see(form, at=10)
    assert counted(replay) == {}

    replay.see(ended(form, 40, phase="Failed"), at=40)
    assert counted(replay) == {("gold", "red", "failed"): 30}


def test_the_pods_of_a_job_that_is_deleted_count_as_deleted_when_they_are_gone(replay: Replay) -> None:
    see_job(replay, job(), at=5)
    replay.see(pod("a"), at=10)
    lose_job(replay, at=50)
    replay.lose(ended(replace(pod("a"), deleted=50), 60), at=60)

    assert counted(replay) == {("gold", "red", "deleted"): 50}


def test_a_job_that_a_list_lacks_counts_as_unknown(replay: Replay) -> None:
    see_job(replay, job(), at=5)
    replay.see(pod("a"), at=10)
    replay.see(ended(pod("a"), 40), at=40)
    list_jobs(replay, at=50)

    assert counted(replay) == {("gold", "red", "unknown"): 30}


def test_a_restart_keeps_what_pods_of_an_open_job_had_that_are_gone(replay: Replay) -> None:
    see_job(replay, job(), at=5)
    replay.see(pod("a"), pod("b"), at=10)
    replay.lose(ended(pod("a"), 40), at=41)
    replay.flush()
    replay.restart()
    list_jobs(replay, job(), at=60)
    replay.see(ended(pod("b"), 70), at=70)
    see_job(replay, job("Complete", 71), at=71)
    assert counted(replay) == {("gold", "red", "succeeded"): 30 + 60}

    replay.restart()
    list_jobs(replay, job("Complete", 71), at=80)
    assert counted(replay) == {("gold", "red", "succeeded"): 30 + 60}


def test_a_pod_waits_for_its_job_until_it_is_deleted(replay: Replay) -> None:
    list_jobs(replay, at=2)
    replay.see(pod("a"), pod("b"), at=10)
    replay.see(ended(pod("a"), 40), ended(pod("b"), 40), at=40)
    assert counted(replay) == {}

    replay.lose(ended(pod("a"), 40), at=41)
    assert counted(replay) == {("gold", "red", "succeeded"): 30}

    see_job(replay, job("Failed", 42), at=42)
    assert counted(replay) == {("gold", "red", "succeeded"): 30, ("gold", "red", "failed"): 30}


def test_without_the_permission_to_watch_jobs_each_pod_counts_on_its_own(replay: Replay) -> None:
    replay.see(pod("a"), pod("b"), at=10)
    replay.see(ended(pod("a"), 40), ended(pod("b"), 50, phase="Failed"), at=50)

    assert counted(replay) == {("gold", "red", "succeeded"): 30, ("gold", "red", "failed"): 40}


def test_a_later_end_of_a_pod_corrects_what_has_counted(replay: Replay) -> None:
    see_job(replay, job("Complete", 40), at=40)
    replay.see(pod("a"), at=10)
    replay.see(ended(pod("a"), 40), at=40)
    assert counted(replay) == {("gold", "red", "succeeded"): 30}

    replay.see(replace(ended(pod("a"), 45), version=3), at=46)
    assert counted(replay) == {("gold", "red", "succeeded"): 35}


def test_a_pod_counts_when_its_own_object_shows_its_end_not_when_its_node_is_gone(replay: Replay) -> None:
    form = pod("a", owners=())
    replay.see(form, at=10)
    replay.lose(NODE, at=60)
    assert counted(replay) == {}

    replay.lose(form, at=70)
    assert counted(replay) == {("gold", "red", "lost"): 50}


def test_jobs_that_an_earlier_version_stored_count_after_the_upgrade(replay: Replay) -> None:
    see_job(replay, job(), at=5)
    replay.see(pod("a"), pod("b", owners=()), at=10)
    replay.see(ended(pod("a"), 40), ended(pod("b", owners=()), 50), at=50)
    see_job(replay, job("Complete", 51), at=51)
    replay.flush()
    as_if_by_an_earlier_version(replay.memory)
    replay.restart()

    assert counted(replay) == {("gold", "red", "succeeded"): 30 + 40}


def as_if_by_an_earlier_version(memory: Memory) -> None:
    """Without what the counter of jobs stores; its classification of pods had another number."""
    memory.pods = {uid: without(text, "counted") for uid, text in memory.pods.items()}
    memory.documents["job"] = {uid: without(text, "counted") for uid, text in memory.documents["job"].items()}
    memory.series = {key: series for key, series in memory.series.items() if key[0] is not Total.JOB}
    memory.resumes = {kind: structs.replace(each, rules="4") for kind, each in memory.resumes.items()}


def without(text: bytes, field: str) -> bytes:
    document = msgspec.json.decode(text)
    document.pop(field, None)
    return msgspec.json.encode(document)

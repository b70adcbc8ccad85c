"""The progress of jobs, as pods state it and as the ledger gets it."""

from dataclasses import replace

import pytest

from gputally.accounting.changes import Changes
from gputally.accounting.jobs.progress import PROGRESS, PROGRESS_UNIT, JobProgress, PodProgress
from gputally.model.kube.kinds import Kind
from gputally.model.units import MICRO
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-train", "controller": True}
NODE = NodeForm(name="n1")
Key = tuple[str, ...]


def pod(progress: str | None, *, name: str = "a", gpus: int = 1, unit: str = "epoch", version: int = 1) -> PodForm:
    stated = {} if progress is None else {PROGRESS: progress, PROGRESS_UNIT: unit}
    form = PodForm(name=name, created=10, node="n1", scheduled=10, started=10, gpus=gpus, version=version)
    return replace(form, owners=(OWNER,), annotations=stated)


@pytest.fixture
def replay() -> Replay:
    replay = Replay()
    replay.see(NODE, at=1)
    return replay


def drained(replay: Replay) -> Changes:
    """Written, too, as a flush does."""
    changes = replay.fleet.drain()
    replay.memory.write(changes)
    return changes


def reached(changes: Changes) -> dict[Key, tuple[float, str]]:
    return {key: (each.micro / MICRO, each.unit) for key, each in changes.progress.items()}


def key(name: str = "a") -> Key:
    return "ml", "Job", "train", f"uid-{name}"


def test_the_ledger_gets_the_progress_of_each_pod_by_its_job(replay: Replay) -> None:
    replay.see(pod("2"), pod("3.5", name="b"), pod(None, name="c"), at=20)

    assert reached(drained(replay)) == {key(): (2, "epoch"), key("b"): (3.5, "epoch")}


def test_a_pod_without_gpus_states_nothing(replay: Replay) -> None:
    replay.see(pod("2", gpus=0), at=20)

    changes = drained(replay)
    assert changes.progress == {}
    assert JobProgress.name not in {part for part, _ in changes.documents}


def test_thousands_of_changes_are_one_row_and_no_revision(replay: Replay) -> None:
    replay.see(pod("0"), at=20)
    drained(replay)
    for count in range(1, 2001):
        replay.see(pod(str(count), unit=f"u{count}", version=count + 1), at=20 + count / 100)

    changes = drained(replay)
    assert reached(changes) == {key(): (2000, "u2000")}
    assert (changes.revisions, changes.pods) == ({}, {})
    assert [each for each in changes.documents if each[0] == "progress"] == [("progress", "uid-a")]


def test_a_lower_or_malformed_value_changes_nothing(replay: Replay) -> None:
    replay.see(pod("7"), at=20)
    drained(replay)
    for version, text in enumerate(("6", "7", "-9", "1e99", "9" * 10_000, ""), 2):
        replay.see(pod(text, version=version), at=21)

    changes = drained(replay)
    assert changes.progress == {}
    assert JobProgress.name not in {part for part, _ in changes.documents}


def test_a_pod_deleted_before_the_flush_keeps_its_last_progress(replay: Replay) -> None:
    replay.see(pod("7"), at=20)
    replay.lose(replace(pod("7", version=2), phase="Succeeded", finished=21), at=22)

    changes = drained(replay)
    assert reached(changes) == {key(): (7, "epoch")}
    assert drained(replay).progress == {}
    assert replay.memory.documents["progress"] == {}


def test_a_pod_that_a_new_list_lacks_is_forgotten(replay: Replay) -> None:
    replay.see(pod("7"), pod("1", name="b"), at=20)
    drained(replay)
    replay.relist(Kind.PODS, pod("1", name="b"), at=40, since=20)

    drained(replay)
    assert replay.memory.documents["progress"].keys() == {"uid-b"}


def test_the_highest_progress_survives_a_restart_and_is_written_again(replay: Replay) -> None:
    replay.see(pod("7"), at=20)
    drained(replay)
    replay.restart()
    replay.see(pod("5", version=3), at=30)

    assert drained(replay).progress == {key(): PodProgress(uid="uid-a", micro=7 * MICRO, unit="epoch", at_us=us(20))}


def test_progress_under_a_preliminary_job_is_written_again_under_the_job(replay: Replay) -> None:
    """A ReplicaSet belongs to a Deployment, which the aggregator asks for."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5f7d", "uid": "set", "controller": True}
    replay.see(replace(pod("7"), owners=(owner,)), at=20)
    drained(replay)
    record = replay.fleet.pods.records["uid-a"]
    assert record.walking
    replay.fleet.pods.records["uid-a"] = type(record)(
        **{name: getattr(record, name) for name in record.__struct_fields__}
        | {"walking": False, "job_kind": "Deployment", "job": "web"}
    )

    assert reached(replay.fleet.drain()) == {("ml", "Deployment", "web", "uid-a"): (7, "epoch")}
    assert replay.fleet.drain().progress == {}


def test_steps_that_could_not_be_written_keep_all_progress(replay: Replay) -> None:
    replay.see(pod("7"), at=20)
    first = replay.fleet.drain()
    replay.see(pod("2", name="b"), at=21)

    assert reached(first.followed_by(replay.fleet.drain())) == {key(): (7, "epoch"), key("b"): (2, "epoch")}

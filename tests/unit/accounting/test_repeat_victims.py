"""A job is a repeat victim if it is preempted three times within a day."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.core.manifests import Json, NodeForm, PodForm
from tests.core.replay import Replay

DAY = 86_400
OWNER: Json = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-train", "controller": True}


def preempt(replay: Replay, name: str, at: int, *, owners: tuple[Json, ...] = (OWNER,)) -> None:
    """A pod of the job runs for ten seconds until it is preempted at that time."""
    form = PodForm(name=name, tier="low", node="n1", created=at - 10, scheduled=at - 10, started=at - 9, owners=owners)
    replay.see(form, at=at - 8)
    replay.lose(replace(form, marked=at, deleted=at, finished=at + 2, phase="Failed", version=2), at=at + 3)


def cluster() -> Replay:
    replay = Replay()
    replay.see(NodeForm(), at=1)
    return replay


def found(replay: Replay, at: float) -> Mapping[tuple[str, str], int]:
    return replay.scrape(at).repeat_victims


def test_three_times_within_a_day_are_often() -> None:
    replay = cluster()
    for number in range(2):
        preempt(replay, f"p{number}", 100 * (number + 1))
    assert found(replay, 300) == {("low", "ml"): 0}
    replay.restart(at=301)

    preempt(replay, "p2", 400)

    assert found(replay, 500) == {("low", "ml"): 1}
    assert found(replay, 101 + DAY) == {("low", "ml"): 0}
    assert found(replay, 405 + DAY) == {}


@pytest.mark.parametrize("apart", [0, 1])
def test_pods_that_are_preempted_together_are_one_time(apart: int) -> None:
    replay = cluster()
    for number in range(5):
        preempt(replay, f"p{number}", 100 + apart * number)

    assert found(replay, 200) == {("low", "ml"): 0}


def test_the_same_preemption_counts_once_however_often_its_pod_changes() -> None:
    replay = cluster()
    preempt(replay, "p0", 100)
    for version, finished in enumerate((105, 110, 115), 3):
        form = PodForm(name="p1", tier="low", node="n1", created=50, scheduled=50, started=51, owners=(OWNER,))
        replay.see(replace(form, marked=101, deleted=101, finished=finished, phase="Failed", version=version), at=116)

    assert found(replay, 200) == {("low", "ml"): 0}


def test_a_pod_without_an_owner_is_no_job() -> None:
    replay = cluster()
    for number in range(3):
        preempt(replay, "alone", 100 * (number + 1), owners=())

    assert found(replay, 500) == {}

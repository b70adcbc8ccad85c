from dataclasses import replace
from unittest.mock import patch

import pytest

from gputally.accounting.fleet.readers import Readers, says_more
from gputally.model.kube.kinds import Kind
from gputally.model.rules import Rules
from tests.core.manifests import PodForm, as_pod
from tests.core.one_pod import BOUND, FINISHED, PENDING, RUNNING, cluster
from tests.core.replay import Replay

TELLING = {
    "an annotation that is read": replace(RUNNING, annotations={"gputally.io/progress": "3"}),
    "a checkpoint in its last words": replace(FINISHED, termination_message="gputally-checkpoint=2026-07-01T00:00:15Z"),
    "a mark": replace(RUNNING, marked=14),
    "a mark that was withdrawn": replace(RUNNING, marked=14, mark_status="False"),
    "an eviction by its queue": replace(RUNNING, marked=14, mark_type="TerminationTarget"),
    "a previous run": replace(RUNNING, before=(11, 12, 1)),
    "a restart of all containers": replace(RUNNING, restarting=14),
    "a group": replace(RUNNING, scheduling_group="gang"),
    "a claim": replace(RUNNING, claims=("gpu",)),
    "an unknown device": replace(RUNNING, more={"example.com/gpu": 1}),
    "the labels of an agent": replace(
        RUNNING,
        namespace="gputally",
        labels={"app.kubernetes.io/name": "gputally", "app.kubernetes.io/component": "agent"},
    ),
}


def readers(replay: Replay, form: PodForm) -> set[str]:
    return {part.name for part in replay.fleet._readers.of(Kind.PODS, as_pod(form))}


@pytest.mark.parametrize("form", [PENDING, BOUND, RUNNING, FINISHED, replace(RUNNING, deleted=14)])
def test_a_pod_that_only_says_how_far_it_is_passes_the_parts_that_read_more(form: PodForm) -> None:
    assert not says_more(as_pod(form), Rules())
    assert readers(cluster(), form) == {"covered-pod", "waiting"}


@pytest.mark.parametrize("form", TELLING.values(), ids=TELLING.keys())
def test_a_pod_that_says_more_is_read_by_all_parts(form: PodForm) -> None:
    assert says_more(as_pod(form), Rules())
    assert readers(cluster(), form) > {"checkpoint", "container_restart", "preemption", "progress", "agent"}


def test_a_pod_of_which_a_part_knows_something_is_read_until_it_is_gone() -> None:
    replay = cluster()
    stated = replace(RUNNING, annotations={"gputally.io/checkpoint-interval": "10m"})
    replay.see(stated, at=13)
    replay.see(replace(RUNNING, version=4), at=14)  # the annotation was removed

    assert replay.fleet.disrupted.lost_work.checkpoints.of("uid-a").interval_us is None
    assert "checkpoint" in readers(replay, RUNNING)

    replay.lose(replace(RUNNING, version=5), at=15)
    assert "checkpoint" not in readers(replay, RUNNING)


def test_a_restart_keeps_what_parts_know_of_pods() -> None:
    replay = cluster()
    replay.see(replace(RUNNING, annotations={"gputally.io/progress": "3"}), at=13)
    replay.flush()
    replay.restart()

    assert "progress" in readers(replay, RUNNING)


def test_after_a_restart_the_readers_look_up_what_each_part_has_restored() -> None:
    """Readers keep the containers that the parts had before they restored anything."""
    replay = cluster()
    stated = {"gputally.io/progress": "3", "gputally.io/checkpoint-interval": "10m"}
    replay.see(replace(RUNNING, annotations=stated, claims=("gpu",), before=(11, 12, 1)), at=13)
    agent = replace(TELLING["the labels of an agent"], name="agent", gpus=0).manifest()
    replay.see_pod(as_pod({**agent, "status": {**agent["status"], "podIP": "10.0.0.1"}}), at=13)
    replay.flush()
    replay.restart()
    known = {part.name: part.known_pods for part in replay.fleet.parts if part.known_pods is not None}

    assert [*map(id, replay.fleet._readers._known_pods)] == [*map(id, known.values())]
    assert {name: [uid for uid in ("uid-a", "uid-agent") if uid in pods] for name, pods in known.items()} == {
        "agent": ["uid-agent"],
        "progress": ["uid-a"],
        "claim-pod": ["uid-a"],
        "checkpoint": ["uid-a"],
        "container_restart": ["uid-a"],
        "preemption": [],
    }


def test_the_parts_that_a_pod_passes_would_have_changed_nothing() -> None:
    def life() -> Replay:
        replay = cluster()
        for at, form in ((6, PENDING), (11, BOUND), (13, RUNNING), (14, replace(RUNNING, version=4)), (18, FINISHED)):
            replay.see(form, at=at)
        replay.lose(FINISHED, at=20)
        replay.flush()
        return replay

    spared = life()
    with patch.object(Readers, "of", lambda self, kind, _: self.of_kind[kind]):
        asked = life()

    assert spared.memory.documents == asked.memory.documents
    assert spared.memory.history == asked.memory.history

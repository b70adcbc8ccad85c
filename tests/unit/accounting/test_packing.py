"""How many nodes jobs occupy, and how few would hold their pods."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gputally.accounting.waiting import packing
from gputally.accounting.waiting.packing import JobNodes
from gputally.model.kube.kinds import Kind
from tests.core.manifests import Json, NodeForm, PodForm, us
from tests.core.replay import Replay

JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-train", "controller": True}
KEY = ("ml", "Job", "train")


def pod(name: str, on: str, gpus: int = 2, *, owner: Json = JOB) -> PodForm:
    return PodForm(name=name, gpus=gpus, node=on, tier="batch", scheduled=5, started=6, owners=(owner,))


def cluster(pods: Sequence[PodForm], *, nodes: Sequence[NodeForm] = ()) -> Replay:
    replay = Replay()
    three = [NodeForm(name=f"n{number}", gpus=8) for number in range(3)]
    replay.relist(Kind.NODES, *(nodes or three), at=1, since=None)
    replay.relist(Kind.PODS, *pods, at=10, since=None)
    judge(replay)
    return replay


def judge(replay: Replay) -> None:
    replay.fleet.reconcile()
    replay.fleet.waiting.judge(at_us=us(11))
    while replay.fleet.waiting.is_behind:
        replay.fleet.waiting.judge(at_us=us(11))


def found(replay: Replay) -> JobNodes | None:
    return replay.fleet.waiting.fitting.packing.of.get(KEY)


def test_a_job_whose_pods_are_spread_needs_fewer_nodes_than_it_uses() -> None:
    replay = cluster([pod("a", "n0"), pod("b", "n1"), pod("c", "n2")])

    assert found(replay) == JobNodes("batch", 3, 1)
    now = replay.fleet.waiting.read()
    assert now
    assert now.job_nodes == {"batch": (3, 1)}


def test_pods_that_end_or_come_count() -> None:
    replay = cluster([pod("a", "n0", 4), pod("b", "n1", 4), pod("c", "n1", 4)])
    assert found(replay) == JobNodes("batch", 2, 2)

    replay.lose(pod("a", "n0", 4), at=20)
    judge(replay)
    assert found(replay) == JobNodes("batch", 1, 1)
    replay.lose(pod("b", "n1", 4), at=20)
    judge(replay)
    assert found(replay) is None


@pytest.mark.parametrize(
    "pods",
    [
        [pod("a", "n0")],
        [pod("a", "n0", 1), pod("b", "n1", 2)],
        [pod("a", "n0"), pod("b", "gone")],
        [replace(pod("a", "n0"), owners=()), replace(pod("b", "n1"), owners=())],
    ],
    ids=["one pod", "different requests", "an unknown node", "no job"],
)
def test_of_other_jobs_nothing_is_said(pods: list[PodForm]) -> None:
    assert cluster(pods).fleet.waiting.fitting.packing.sums() == {}


def test_nodes_of_another_size_change_what_is_needed() -> None:
    nodes = [NodeForm(name=f"n{number}", gpus=2) for number in range(2)]
    replay = cluster([pod("a", "n0"), pod("b", "n1")], nodes=nodes)
    assert found(replay) == JobNodes("batch", 2, 2)

    replay.see(NodeForm(name="large", gpus=8), at=20)
    judge(replay)
    assert found(replay) == JobNodes("batch", 2, 1)


def test_nodes_of_another_model_do_not_count() -> None:
    small = {"labels": {"nvidia.com/gpu.product": "A10"}, "gpus": 2}
    nodes = [NodeForm(name="n0", **small), NodeForm(name="n1", **small), NodeForm(name="n2", gpus=8)]  # type: ignore[arg-type] # its fields

    assert found(cluster([pod("a", "n0"), pod("b", "n1")], nodes=nodes)) == JobNodes("batch", 2, 2)


def test_a_restart_knows_the_jobs_once_all_pods_are_known() -> None:
    replay = cluster([pod("a", "n0"), pod("b", "n1")])
    replay.flush()
    replay.restart(at=30)
    assert found(replay) is None

    replay.relist(Kind.NODES, *(NodeForm(name=f"n{number}") for number in range(3)), at=31, since=30)
    replay.relist(Kind.PODS, pod("a", "n0"), pod("b", "n1"), at=32, since=30)
    judge(replay)
    assert found(replay) == JobNodes("batch", 2, 1)


def test_a_step_looks_at_some_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_JOBS", 1)
    others = [pod(f"o{node}", node, owner=JOB | {"name": "other", "uid": "uid-other"}) for node in ("n0", "n1")]

    replay = cluster([pod("a", "n0"), pod("b", "n1"), *others])

    assert replay.fleet.waiting.fitting.packing.sums() == {"batch": (4, 2)}

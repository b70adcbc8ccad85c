"""What pods take from their nodes, which is computed once for all that are alike."""

from typing import Any

import pytest
from msgspec import convert

from gputally.accounting.waiting import bound_pods
from gputally.accounting.waiting.bound_pods import other_pod
from gputally.model.kube.kinds import Kind
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.needs import Amounts, Taken
from gputally.model.observation import OtherPod
from gputally.model.rules import Rules
from gputally.placement.needs import amounts_of
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay


def sidecar_pod(name: str, *, cpu: str = "500m", sidecar: str = "100m", **more: object) -> PlaceablePod:
    """A pod without GPUs in a service mesh."""
    manifest = PodForm(name=name, gpus=0, node="n1", scheduled=5, started=6).manifest()
    manifest["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    manifest["spec"]["initContainers"] = [
        {"name": "mesh", "restartPolicy": "Always", "resources": {"requests": {"cpu": sidecar}}}
    ]
    manifest["spec"] |= more
    return convert(manifest, PlaceablePod)


def brief_of(pod: PlaceablePod) -> OtherPod:
    brief = other_pod(pod, us(7), us(7), rules=Rules(), matters=lambda _: True)
    assert brief
    return brief


def test_what_pods_with_sidecars_take_is_computed_once_for_all_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[PlaceablePod] = []

    def counted(pod: PlaceablePod) -> Amounts:
        computed.append(pod)
        return amounts_of(pod)

    monkeypatch.setattr(bound_pods, "amounts_of", counted)

    found = {brief_of(sidecar_pod(f"p{number % 3}", sidecar="123m")).taken for number in range(100)}

    assert found == {Taken((("cpu", 623), ("pods", 1)), 0)}
    assert len(computed) == 1


@pytest.mark.parametrize(
    ("changed", "cpu", "priority"),
    [
        ({"cpu": "700m"}, 800, 0),
        ({"sidecar": "300m"}, 800, 0),
        ({"overhead": {"cpu": "50m"}}, 650, 0),
        ({"resources": {"requests": {"cpu": "2"}}}, 2000, 0),
        ({"priority": 7}, 600, 7),
    ],
    ids=str,
)
def test_what_a_pod_takes_follows_each_request_of_it(changed: dict[str, Any], cpu: int, priority: int) -> None:
    before, after = (brief_of(pod).taken for pod in (sidecar_pod("a"), sidecar_pod("a", **changed)))

    assert before == Taken((("cpu", 600), ("pods", 1)), 0)
    assert after == Taken((("cpu", cpu), ("pods", 1)), priority)


def test_a_pod_that_cannot_be_read_takes_its_place_among_the_pods() -> None:
    assert brief_of(sidecar_pod("b", cpu="much")).taken == Taken((("pods", 1),), 0)


def test_a_pod_that_is_resized_while_it_runs_takes_its_new_requests() -> None:
    replay = Replay(opened=0)
    replay.relist(Kind.NODES, NodeForm(name="n1", gpus=8, created=0), at=1, since=None)
    cpu = replay.fleet.waiting.room.nodes["n1"].free["cpu"]

    replay.apply(brief_of(sidecar_pod("b")))
    assert replay.fleet.waiting.room.nodes["n1"].free["cpu"] == cpu - 600

    replay.apply(brief_of(sidecar_pod("b", cpu="900m")))
    assert replay.fleet.waiting.room.nodes["n1"].free["cpu"] == cpu - 1000

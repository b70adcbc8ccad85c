"""Pods that are resized in place on the real scheduler: answers count of them what the scheduler counts."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import Json, path
from tests.cluster.objects import condition
from tests.e2e.practice import Practice, practised
from tests.e2e.test_declared_groups import verdict
from tests.fakes.command import run

pytestmark = pytest.mark.e2e

LITTLE, MUCH, TOO_MUCH = "2", "90", "96"
"""CPUs, of the 96 of the node, of which a waiting pod needs 10."""


class Resize(NamedTuple):
    """CPUs that a pod asks for, has been allocated and has, and the condition of its kubelet with its reason."""

    asked: str
    allocated: str
    actual: str
    kind: str
    reason: str = ""

    @property
    def status(self) -> Json:
        """What the kubelet writes."""
        return {
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": self.kind, "status": "True", "reason": self.reason},
            ],
            "containerStatuses": [
                {
                    "name": "main",
                    "image": "",
                    "imageID": "",
                    "restartCount": 0,
                    "ready": True,
                    "state": {"running": {}},
                    "allocatedResources": {"cpu": self.allocated, "memory": "1Gi"},
                    "resources": {"requests": {"cpu": self.actual, "memory": "1Gi"}},
                }
            ],
        }


SETTLED = Resize(LITTLE, LITTLE, LITTLE, "").status["containerStatuses"]


@pytest.fixture
async def practice(control_plane: ControlPlane, place: str, tmp_path: Path) -> AsyncIterator[Practice]:
    async with practised(control_plane, place, tmp_path) as practice:
        yield practice


@pytest.mark.parametrize(
    ("resize", "binds"),
    [
        pytest.param(Resize(MUCH, LITTLE, LITTLE, "PodResizePending", "Deferred"), False, id="deferred"),
        pytest.param(Resize(TOO_MUCH, LITTLE, LITTLE, "PodResizePending", "Infeasible"), True, id="infeasible"),
        pytest.param(Resize(MUCH, MUCH, LITTLE, "PodResizeInProgress"), False, id="growing"),
        pytest.param(Resize(LITTLE, LITTLE, MUCH, "PodResizeInProgress"), False, id="shrinking"),
    ],
)
async def test_answers_agree_with_the_scheduler_in_each_state_of_a_resize(
    practice: Practice,
    tmp_path: Path,
    resize: Resize,
    binds: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    await practice.furnish({"tier": 1000}, gpus=8)
    holder = await practice.api.create(requesting(practice.pod("holder", "tier"), LITTLE))
    await practice.running(1, "tier")
    await resized(practice, holder, resize)

    manifest = tmp_path / "waiting.json"
    manifest.write_text(json.dumps(requesting(practice.pod("waiting", "tier"), "10")))
    await expect_forecast(practice, manifest, bound=int(binds))
    waiting = await practice.api.create(json.loads(manifest.read_text()))
    scheduled = condition(await practice.api.wait_for(path(waiting), is_reported) or {}, "PodScheduled")

    assert scheduled["status"] == str(binds)
    if not binds:
        assert "Insufficient cpu" in scheduled["message"]
        answer = await verdict(practice.product, f"{practice.place}/waiting", "cpu_or_memory")
        assert [each["text"].rpartition(": ")[2] for each in answer["obstacles"]] == ["10 CPUs needed, 6 available"]


def requesting(pod: Json, cpus: str) -> Json:
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpus
    return pod


async def resized(practice: Practice, holder: Json, resize: Resize) -> None:
    """The pod is asked to have another size, and its kubelet says how far it has got.

    The API server refuses that for a node whose kubelet has not written what is in force.
    """
    await practice.api.patch(f"{path(holder)}/status", {"status": {"containerStatuses": SETTLED}})
    given = {"name": "main", "resources": {"requests": {"cpu": resize.asked}}}
    await practice.api.call(
        "PATCH",
        f"{path(holder)}/resize",
        json={"spec": {"containers": [given]}},
        headers={"Content-Type": "application/strategic-merge-patch+json"},
    )
    await practice.api.patch(f"{path(holder)}/status", {"status": resize.status})


async def expect_forecast(practice: Practice, manifest: Path, *, bound: int) -> None:
    """What is said of the pod before it is created, once the resize is known."""
    found: Json = {}
    for _ in range(40):
        said = await run("what-if", "--url", practice.product.url, "--output", "json", manifest)
        [found] = json.loads(said.out)["forecasts"]
        if found["bound"] == bound:
            return
        await asyncio.sleep(0.25)
    raise AssertionError(found)


def is_reported(pod: Json | None) -> bool:
    return bool(pod) and bool(condition(pod or {}, "PodScheduled"))

"""A real kubelet that restarts without its GPUs rejects pods that it had accepted: they held them until then."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gputally.model.units import GPU, US_PER_SECOND
from tests.behaviour.product import Product, total
from tests.cluster.manifests import GPU as NVIDIA_GPU
from tests.cluster.manifests import Json, path
from tests.cluster.objects import condition, seconds
from tests.node.images import BUSYBOX_IMAGE
from tests.node.kubelet import Kubelet
from tests.node.node import node_pod
from tests.node.scene import ALLOCATED, Scene, total_of

pytestmark = pytest.mark.node

INITIALIZES: Json = {
    "name": "download",
    "image": BUSYBOX_IMAGE.reference,
    "imagePullPolicy": "Never",
    "command": ["sleep", "1000000"],
}


@pytest.fixture
async def product(scene: Scene, tmp_path: Path) -> AsyncIterator[Product]:
    """An aggregator that the test may restart."""
    product = Product(tmp_path, scene.node.control_plane.kubeconfig("gputally"))
    await product.start()
    yield product
    await product.kill()


@asynccontextmanager
async def stopped(kubelet: Kubelet) -> AsyncIterator[None]:
    """Without the kubelet, which starts again at the end."""
    kubelet.kill()
    try:
        yield
    finally:
        await kubelet.start()


async def test_pods_that_a_rebooted_node_rejects_are_billed_until_then_if_they_had_been_accepted(
    scene: Scene, product: Product
) -> None:
    """As after a reboot, the device plugin has no healthy GPU yet when the kubelet looks at its pods again.

    One initializes, one cannot pull its image; both have their devices. The third was bound while the kubelet was down.
    """
    scene = replace(scene, product=product)
    initializing = node_pod("initializing", scene.place, gpus=3, initContainers=[INITIALIZES])
    pulling = node_pod("pulling", scene.place, gpus=2, image="docker.io/library/absent:e2e")
    held = [await scene.create(initializing), await scene.create(pulling)]
    bound_s = dict[str, float]()
    for pod in held:
        accepted = await scene.api.wait_for(path(pod), is_accepted)
        assert accepted
        bound_s[pod["metadata"]["name"]] = seconds(condition(accepted, "PodScheduled")["lastTransitionTime"])
    await product.until(lambda samples: total(samples, ALLOCATED, tenant=scene.place) > 5)
    async with stopped(scene.node.kubelet):
        late = await scene.create(node_pod("late", scene.place, gpus=1))
        await scene.api.wait_for(path(late), is_bound)
        await product.kill()  # what it knows of the acceptance is in its ledger
        await product.start()
        await asyncio.sleep(3)
        scene.node.plugin.offer(NVIDIA_GPU, [])
        restarted_us = time.time_ns() // 1000
    for pod in (*held, late):
        await rejected(scene, pod)

    noticed_us = time.time_ns() // 1000 + US_PER_SECOND
    for pod, gpus in zip(held, (3, 2), strict=True):
        segments = await scene.segments(pod)
        bound_us = int(bound_s[pod["metadata"]["name"]] * US_PER_SECOND)
        end_us = segments[-1].end_us or 0
        assert segments[0].start_us == bound_us
        assert restarted_us <= end_us <= noticed_us
        assert total_of(segments, "starting") == gpus * GPU * (end_us - bound_us)
        await scene.published(pod, total_of(segments, "starting"), name=ALLOCATED)
    await held_nothing(product, late)


async def held_nothing(product: Product, pod: Json) -> None:
    """The ledger has the rejection of the pod, and no time of it."""
    uid = pod["metadata"]["uid"]
    ended = f"SELECT DISTINCT end_by FROM allocations WHERE pod_uid = '{uid}' AND end_by IS NOT NULL"
    assert await product.query_until(ended, bool) == [("rejected",)]
    assert product.query(f"SELECT * FROM current_segments WHERE pod_uid = '{uid}'") == []


async def rejected(scene: Scene, pod: Json) -> None:
    """Return once the pod is rejected. The kubelet has removed its conditions by then, PodScheduled too."""
    found = await scene.api.wait_for(
        path(pod), lambda found: found is not None and found["status"]["phase"] == "Failed"
    )
    assert found
    status = found["status"]
    assert status["reason"] == "UnexpectedAdmissionError"
    assert status["startTime"]


def is_accepted(pod: Json | None) -> bool:
    """Whether its kubelet has told of its containers; an init container runs by then."""
    assert pod is not None
    inits = pod["status"].get("initContainerStatuses", ())
    return bool(pod["status"].get("containerStatuses")) and all("running" in each["state"] for each in inits)


def is_bound(pod: Json | None) -> bool:
    return pod is not None and bool(pod["spec"].get("nodeName"))

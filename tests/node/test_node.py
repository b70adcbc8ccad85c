"""The harness itself: the kubelet, containerd and the device plugin do what tests of the agent build on."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from tests.cluster.api import Api
from tests.cluster.manifests import GPU, Json, path, priority_class
from tests.cluster.objects import condition, container_state, seconds
from tests.node.images import TAG_OF_TESTS, Image, busybox
from tests.node.node import MIG_1G, SHARED_GPU, Node, eventually, node_pod
from tests.node.pod_resources import allocatable
from tests.node.pods import deletion_asked_s, forms, running, waits_for

pytestmark = pytest.mark.node

SAY_AND_SLEEP = ("sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES; sleep 1000000")
GRACE_S = 3


async def test_the_node_offers_its_devices_under_their_names(node: Node, api: Api, place: str) -> None:
    assert place

    found = await api.get(f"/api/v1/nodes/{node.name}")

    devices = {GPU: "8", SHARED_GPU: "4", MIG_1G: "2"}
    assert devices.items() <= found["status"]["capacity"].items()
    assert devices.items() <= found["status"]["allocatable"].items()
    assert found["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-80GB"
    assert allocatable(node.pod_resources) == {name: sorted(ids) for name, ids in node.standard_offer.items()}


@pytest.mark.parametrize("resource", [GPU, SHARED_GPU, MIG_1G])
async def test_a_pod_holds_the_devices_that_it_was_told_of(node: Node, api: Api, place: str, resource: str) -> None:
    count = 1 if resource == MIG_1G else 2
    pod = await api.create(node_pod("train", place, gpus=count, resource=resource, command=SAY_AND_SLEEP))
    await running(api, pod)

    held = node.held()

    assert set(held) == {f"{place}/train"}
    [(name, ids)] = held[f"{place}/train"].items()
    assert (name, len(set(ids))) == (resource, count)
    assert set(ids) <= set(node.standard_offer[resource])
    await eventually(lambda: node.output_of(pod) != "")
    assert set(node.output_of(pod).split(",")) == {device.partition("::")[0] for device in ids}


@pytest.mark.parametrize(
    ("image", "policy", "reason"),
    [
        ("docker.io/library/absent:e2e", "Never", "ErrImageNeverPull"),
        ("127.0.0.1:1/absent:e2e", "IfNotPresent", "ImagePullBackOff"),  # nobody listens there
    ],
)
async def test_a_pod_that_lacks_its_image_holds_its_device(
    node: Node, api: Api, place: str, image: str, policy: str, reason: str
) -> None:
    manifest = node_pod("stuck", place, gpus=1, image=image)
    manifest["spec"]["containers"][0]["imagePullPolicy"] = policy
    pod = await api.create(manifest)

    await api.wait_for(path(pod), lambda found: waits_for(found) == reason)

    held = node.held()
    assert set(held) == {f"{place}/stuck"}
    assert set(held[f"{place}/stuck"][GPU]) < set(node.whole_gpus)


async def test_a_pod_that_has_completed_holds_nothing(node: Node, api: Api, place: str) -> None:
    pod = await api.create(node_pod("brief", place, gpus=1, command=["true"]))

    await api.wait_for(path(pod), lambda found: found is not None and found["status"]["phase"] == "Succeeded")

    await eventually(lambda: not node.held())


async def test_devices_are_listed_and_offered_again_after_the_kubelet_was_killed(
    node: Node, api: Api, place: str
) -> None:
    pod = await api.create(node_pod("steadfast", place, gpus=3))
    before = await running(api, pod)
    held, registrations = node.held(), node.plugin.registrations(GPU)
    version = (await api.list("/api/v1/nodes"))["metadata"]["resourceVersion"]

    await node.kubelet.restart()

    await eventually(lambda: node.plugin.registrations(GPU) > registrations)
    await eventually(lambda: node.held() == held)
    assert held[f"{place}/steadfast"]
    await heartbeat(node, api, since=version)
    await node.ready()
    after = await api.get(path(pod))
    assert after["status"]["phase"] == "Running"
    assert container_state(after, "running") == container_state(before, "running")


async def test_an_unhealthy_device_is_capacity_but_not_allocatable(node: Node, api: Api, place: str) -> None:
    assert place
    broken = node.whole_gpus[3]

    node.plugin.set_health(broken, healthy=False)

    found = await api.wait_for(f"/api/v1/nodes/{node.name}", lambda found: allocatable_gpus(found) == "7")
    assert found
    assert found["status"]["capacity"][GPU] == "8"
    assert set(node.whole_gpus) - set(allocatable(node.pod_resources)[GPU]) == {broken}
    node.plugin.set_health(broken, healthy=True)
    await api.wait_for(f"/api/v1/nodes/{node.name}", lambda found: allocatable_gpus(found) == "8")


async def test_the_offered_devices_may_change(node: Node, api: Api, place: str) -> None:
    node.plugin.offer(GPU, [f"{node.whole_gpus[0]}::{share}" for share in range(10)])

    await api.wait_for(f"/api/v1/nodes/{node.name}", lambda found: allocatable_gpus(found) == "10")

    pod = await api.create(node_pod("sharing", place, gpus=10))
    await running(api, pod)
    assert {device.partition("::")[0] for device in node.held()[f"{place}/sharing"][GPU]} == {node.whole_gpus[0]}


async def test_a_preempted_pod_ends_with_its_grace_and_its_devices_go_to_the_preemptor(
    node: Node, api: Api, place: str
) -> None:
    await api.create(priority_class(f"{place}-training", 500))
    await api.create(priority_class(f"{place}-inference", 10_000))
    training = node_pod("training", place, gpus=8, grace_seconds=GRACE_S, priorityClassName=f"{place}-training")
    victim = await running(api, await api.create(training))

    inference = await api.create(node_pod("inference", place, gpus=2, priorityClassName=f"{place}-inference"))

    life = await forms(api, victim)
    gone, asked = life[-1], deletion_asked_s(life)
    assert condition(gone, "DisruptionTarget")["reason"] == "PreemptionByScheduler"
    assert GRACE_S - 1 <= seconds(container_state(gone, "terminated")["finishedAt"]) - asked <= GRACE_S + 2
    await running(api, inference)
    held = node.held()
    assert set(held) == {f"{place}/inference"}
    assert len(held[f"{place}/inference"][GPU]) == 2


async def test_an_image_is_made_of_a_folder(node: Node, api: Api, place: str, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "word").write_text("from the folder")
    base = busybox("worded", ["cat", "/opt/app/deep/word"])
    image = Image("worded", {**base.files, "/opt/app": tmp_path}, base.links, base.command)
    await node.containerd.load(image)
    assert image.reference == f"docker.io/library/worded:{TAG_OF_TESTS}"

    pod = await api.create(node_pod("reader", place, image=image.reference, command=image.command))

    await api.wait_for(path(pod), lambda found: found is not None and found["status"]["phase"] == "Succeeded")
    assert node.output_of(pod) == "from the folder"


async def heartbeat(node: Node, api: Api, *, since: str) -> None:
    """Return once the kubelet has said anything of its node."""
    async with asyncio.timeout(30), aclosing(api.watch("/api/v1/nodes", since=since)) as changes:
        async for change in changes:
            if change["type"] == "MODIFIED" and change["object"]["metadata"]["name"] == node.name:
                return


def allocatable_gpus(node: Json | None) -> str:
    assert node
    count: str = node["status"]["allocatable"][GPU]
    return count

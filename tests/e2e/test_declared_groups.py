"""Gangs whose PodGroup a real API server has, from definitions that are installed while the product runs."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gputally.model.kube.kinds import OPTIONAL_RESOURCES
from tests.behaviour.product import Product, total
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import Json, gpu_node, gpu_pod, metadata, namespace, path, priority_class
from tests.e2e.oracle.gang import GATES, GROUPS
from tests.e2e.watching import watching
from tests.fakes.command import run

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets of killed servers
]

WATCHES = ("volcanoPodGroups", "coschedulingPodGroups", "corePodGroups")
CORE = ("scheduling.k8s.io", "v1alpha2")
"""Kubernetes 1.36 has no later version."""
COSCHEDULING, VOLCANO = ("scheduling.x-k8s.io", "v1alpha1"), ("scheduling.volcano.sh", "v1beta1")
AVAILABLE = "gputally_watch_available"
ALLOCATED = "gputally_allocated_gpu_seconds_total"


@pytest.fixture
async def product(api: Api, control_plane: ControlPlane, place: str, tmp_path: Path) -> AsyncIterator[Product]:
    """The aggregator with the rights that the chart grants for PodGroups, started before any API has them."""
    watched = ",".join(each for each in OPTIONAL_RESOURCES if each.startswith("podgroups"))
    async with watching(
        api, control_plane, place, tmp_path, values=WATCHES, environment={"GPUTALLY_WATCH": watched}
    ) as found:
        await found.start()
        yield found


@pytest.fixture
async def defined(api: Api, product: Product) -> AsyncIterator[None]:
    """The definitions of both kinds of PodGroups, which the product finds without a restart."""
    samples = await product.scrape()
    assert [total(samples, AVAILABLE, resource=f"podgroups.{group}") for group, _ in (COSCHEDULING, VOLCANO)] == [0, 0]
    made = [await api.create(definition(*each)) for each in (COSCHEDULING, VOLCANO)]
    await product.until(
        lambda found: all(total(found, AVAILABLE, resource=f"podgroups.{each}") for each, _ in (COSCHEDULING, VOLCANO)),
        within=40,
    )
    assert total(await product.scrape(), AVAILABLE, resource="podgroups.scheduling.k8s.io") == 0
    yield
    for each in made:
        await api.delete(path(each))


def definition(group: str, version: str) -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    # Kubernetes protects groups of its own domain
    approved = {"annotations": {"api-approved.kubernetes.io": "https://example.com"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata(f"podgroups.{group}") | approved,
        "spec": {
            "group": group,
            "names": {"kind": "PodGroup", "plural": "podgroups"},
            "scope": "Namespaced",
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }


def group_of(api: tuple[str, str], name: str, place: str, least: object, **spec: object) -> Json:
    own = metadata(name, place)
    return {"apiVersion": "/".join(api), "kind": "PodGroup", "metadata": own, "spec": {"minMember": least} | spec}


async def bound(api: Api, pod: Json, node: str) -> None:
    """Bind a pod, as a scheduler of gangs would."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    own = metadata(pod["metadata"]["name"], pod["metadata"]["namespace"])
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": own, "target": target}
    await api.call("POST", f"{path(pod)}/binding", json=binding)


async def verdict(product: Product, pod: str, expected: str) -> Json:
    """The answer about a pod once its reason is as expected."""
    answer: Json = {}
    for _ in range(80):
        said = await run("why", "--url", product.url, "--output", "json", pod)
        [answer] = json.loads(said.out)["answers"]
        if answer["pod"]["reason"] == expected:
            return answer
        await asyncio.sleep(0.25)
    raise AssertionError(answer)


async def placed(api: Api, place: str, tier: str) -> None:
    """A gang of 8, of which 6 are bound; one more would fit."""
    await api.create(gpu_node(f"{place}-node", gpus=7, pool=place))
    await api.create(priority_class(tier, 100))
    labels = {"scheduling.x-k8s.io/pod-group": "train"}
    pods = [
        gpu_pod(f"train-{i}", place, labels=labels, priorityClassName=tier, schedulerName="gangs") for i in range(8)
    ]
    for each in pods:
        await api.create(each)
    for each in pods[:6]:
        await bound(api, each, f"{place}-node")


@pytest.mark.usefixtures("defined")
async def test_the_declared_minimum_decides_about_gangs_and_follows_its_changes(
    api: Api, place: str, product: Product
) -> None:
    tier, group = f"{place}-gang", group_of(COSCHEDULING, "train", place, 8)
    await api.create(group)
    await placed(api, place, tier)

    samples = await product.until(lambda found: total(found, "gputally_partial_gang_gpus", tier=tier) == 6)
    assert total(samples, "gputally_partial_gangs", tier=tier) == 1
    await product.until(lambda found: total(found, ALLOCATED, tier=tier, state="gang_wait") > 0)
    answer = await verdict(product, f"{place}/train-7", "gang")
    assert (answer["gang"]["bound"], answer["gang"]["needed"]) == (6, 8)
    said = " ".join((await run("why", "--url", product.url, f"{place}/train-7")).out.split())
    assert "its gang PodGroup train needs 8 pods at once, of which 6 hold resources" in said

    await api.patch(path(group), {"spec": {"minMember": -1}})
    await product.until(lambda found: total(found, "gputally_skipped_objects_total") == 1)
    assert total(await product.scrape(), "gputally_partial_gangs", tier=tier) == 1
    await api.patch(path(group), {"spec": {"minMember": "six"}})
    await product.until(lambda found: total(found, "gputally_watch_malformed_objects_total") == 1)
    await api.patch(path(group), {"spec": {"minMember": 6}})
    await product.until(lambda found: total(found, "gputally_partial_gangs", tier=tier) == 0)
    await product.until(lambda found: total(found, ALLOCATED, tier=tier, state="running") > 0)
    waited = total(await product.scrape(), ALLOCATED, tier=tier, state="gang_wait")
    await verdict(product, f"{place}/train-7", "schedulable")

    await api.patch(path(group), {"spec": {"minMember": 8}})
    await verdict(product, f"{place}/train-7", "gang")
    await api.delete(path(group))
    await verdict(product, f"{place}/train-7", "schedulable")
    samples = await product.scrape()
    assert total(samples, ALLOCATED, tier=tier, state="gang_wait") == waited
    assert total(samples, "gputally_skipped_objects_total") == 1


@pytest.mark.usefixtures("defined")
async def test_pods_that_name_a_volcano_group_are_a_gang_by_its_minimum(api: Api, place: str, product: Product) -> None:
    tier = f"{place}-gang"
    await api.create(gpu_node(f"{place}-node", gpus=2, pool=place))
    await api.create(priority_class(tier, 100))
    names = {"scheduling.k8s.io/group-name": "ray"}
    group = group_of(VOLCANO, "ray", place, 2)
    await api.create(group)
    pods = [
        gpu_pod(f"ray-{i}", place, annotations=names, priorityClassName=tier, schedulerName="gangs") for i in range(2)
    ]
    for each in pods:
        await api.create(each)
    await bound(api, pods[0], f"{place}-node")
    await product.until(lambda found: total(found, "gputally_partial_gangs", tier=tier) == 1)
    await product.until(lambda found: total(found, ALLOCATED, tier=tier, state="gang_wait") > 0)

    await api.delete(path(group))  # nobody knows of a gang any more
    await product.until(lambda found: total(found, "gputally_partial_gangs", tier=tier) == 0)
    await product.until(lambda found: total(found, ALLOCATED, tier=tier, state="running") > 0)
    assert total(await product.scrape(), ALLOCATED, tier=tier, state="gang_wait") > 0


@pytest.mark.usefixtures("defined")
async def test_a_gang_of_volcano_waits_for_the_minimum_of_each_task(api: Api, place: str, product: Product) -> None:
    tier, task = f"{place}-gang", "volcano.sh/task-spec"
    await api.create(gpu_node(f"{place}-node", gpus=8, pool=place))
    await api.create(priority_class(tier, 100))
    group = group_of(VOLCANO, "train", place, 4, minTaskMember={"ps": 1, "worker": 3})
    await api.create(group)
    pods = [
        gpu_pod(
            name,
            place,
            labels={"volcano.sh/job-name": "train", task: name[:-2]},
            annotations={"scheduling.k8s.io/group-name": "train", task: name[:-2]},
            priorityClassName=tier,
            schedulerName="gangs",
        )
        for name in ("ps-0", "ps-1", "worker-0", "worker-1", "worker-2")
    ]
    for each in pods[:4]:
        await api.create(each)
        await bound(api, each, f"{place}-node")

    await product.until(lambda found: total(found, "gputally_partial_gang_gpus", tier=tier) == 4)
    await api.create(pods[4])
    await product.until(lambda found: total(found, ALLOCATED, tier=tier, state="gang_wait") > 0)
    said = " ".join((await run("why", "--url", product.url, f"{place}/worker-2")).out.split())
    assert "4 of 5 pods of VolcanoJob" in said
    assert "(task worker: 2 of 3)" in said

    await api.patch(path(group), {"spec": {"minTaskMember": {"ps": 1, "worker": 2}}})
    await product.until(lambda found: total(found, "gputally_partial_gangs", tier=tier) == 0)
    await product.until(lambda found: total(found, ALLOCATED, tier=tier, state="running") > 0)
    await api.patch(path(group), {"spec": {"minTaskMember": {"worker": -1}}})
    await product.until(lambda found: total(found, "gputally_skipped_objects_total") == 1)


async def test_a_group_of_kubernetes_is_read_in_the_version_that_the_server_has(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    arguments = [f"--runtime-config={GROUPS}=true", GATES]
    plane = ControlPlane(tmp_path_factory.mktemp("plane"), api_server_args=arguments)
    async with plane, Api(plane.url, plane.token("admin"), plane.ca_file) as api:
        core = group_of(CORE, "c", "ml", 0)
        core["spec"] = {"schedulingPolicy": {"gang": {"minCount": 3}}}
        await api.create(namespace("ml"))
        await api.create(gpu_node("node", gpus=2))
        await api.create(core)
        kubeconfig = plane.kubeconfig("admin")
        product = Product(tmp_path, kubeconfig, environment={"GPUTALLY_WATCH": "podgroups.scheduling.k8s.io"})
        try:
            await product.start()
            pods = [
                gpu_pod(f"c-{i}", "ml", schedulingGroup={"podGroupName": "c"}, schedulerName="gangs") for i in range(4)
            ]
            for each in pods:
                await api.create(each)
            for each in pods[:2]:
                await bound(api, each, "node")

            samples = await product.until(lambda found: total(found, "gputally_partial_gangs") == 1)
            assert total(samples, AVAILABLE, resource="podgroups.scheduling.k8s.io") == 1
            said = await run("why", "--url", product.url, "ml/c-3")
            assert "2 of 3 pods of PodGroup ml/c have been bound" in " ".join(said.out.split())
        finally:
            await product.kill()

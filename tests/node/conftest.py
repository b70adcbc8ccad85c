"""A real node for all tests of a run that are marked `node`; each test has a namespace of its own."""

import os
from collections.abc import AsyncIterator
from itertools import count

import pytest
import pytest_asyncio

from tests.cluster.api import Api
from tests.cluster.manifests import namespace
from tests.node.node import Node, eventually
from tests.node.product_image import ProductImage
from tests.node.scene import Measurement, Scene, measurement

NUMBERS = count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("GPUTALLY_E2E_NODE") == "1":
        return
    for item in items:
        if item.get_closest_marker("node"):
            item.add_marker(pytest.mark.skip(reason="needs root and a real kubelet: make e2e-node"))


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> ProductImage:
    return ProductImage.made(tmp_path_factory.mktemp("image"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def node(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Node]:
    async with Node(tmp_path_factory.mktemp("node")) as node:
        yield node


@pytest.fixture
async def api(node: Node) -> AsyncIterator[Api]:
    async with node.api() as api:
        yield api


@pytest.fixture
async def place(node: Node, api: Api) -> AsyncIterator[str]:
    """A new namespace; tiers of the test begin with its name and a dash. Afterwards the node is as it was."""
    name = f"node-{next(NUMBERS)}"
    await api.create(namespace(name))
    yield name
    for resource, ids in node.standard_offer.items():
        node.plugin.offer(resource, ids)
    await vacate(api, name)
    await eventually(lambda: not node.held())
    await node.ready()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def measured(node: Node, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Measurement]:
    async with measurement(node, tmp_path_factory.mktemp("measured")) as measured:
        yield measured


@pytest.fixture
async def scene(measured: Measurement, node: Node, api: Api, place: str) -> AsyncIterator[Scene]:
    """The test's namespace is a tenant; afterwards the GPUs are as they were."""
    await api.patch(f"/api/v1/namespaces/{place}", {"metadata": {"labels": {"team": place}}})
    yield Scene(node, api, place, measured.gpus, measured.agent, measured.product)
    measured.gpus.restore()


async def vacate(api: Api, place: str) -> None:
    """Leave no pod behind. Each has its grace: what is deleted by force may still run, and hold its devices."""
    await api.delete(f"/api/v1/namespaces/{place}")
    pods = f"/api/v1/namespaces/{place}/pods"
    await api.delete(pods)
    await api.wait_for_items(pods, lambda items: not items)
    for tier in (await api.list("/apis/scheduling.k8s.io/v1/priorityclasses"))["items"]:
        if tier["metadata"]["name"].startswith(f"{place}-"):
            await api.delete(f"/apis/scheduling.k8s.io/v1/priorityclasses/{tier['metadata']['name']}")

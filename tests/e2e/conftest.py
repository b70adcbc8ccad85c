"""One real control plane for all end-to-end tests; each test has its own namespace and node pool."""

import os
from collections.abc import AsyncIterator
from itertools import count

import pytest
import pytest_asyncio

from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import POOL, namespace

NUMBERS = count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip_without_control_plane(items)


def skip_without_control_plane(items: list[pytest.Item]) -> None:
    if os.environ.get("GPUTALLY_E2E") == "1":
        return
    for item in items:
        if item.get_closest_marker("e2e"):
            item.add_marker(pytest.mark.skip(reason="needs a real control plane: make e2e, or GPUTALLY_E2E=1"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def control_plane(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlPlane]:
    async with ControlPlane(tmp_path_factory.mktemp("control-plane")) as control_plane:
        yield control_plane


@pytest.fixture
async def api(control_plane: ControlPlane) -> AsyncIterator[Api]:
    async with Api(control_plane.url, control_plane.token("admin"), control_plane.ca_file) as api:
        yield api


@pytest.fixture
async def place(api: Api) -> AsyncIterator[str]:
    """A new namespace. The test's node pool has the same name, and its tiers start with `NAMESPACE-`."""
    name = f"e2e-{next(NUMBERS)}"
    await api.create(namespace(name))
    yield name
    await vacate(api, name)


async def vacate(api: Api, place: str) -> None:
    """Delete all pods and nodes; the namespace first, so that no controller recreates pods."""
    await api.delete(f"/api/v1/namespaces/{place}")
    pods = f"/api/v1/namespaces/{place}/pods"
    await api.delete(pods, grace_seconds=0)
    await api.wait_for_items(pods, lambda items: not items)
    await api.call("DELETE", "/api/v1/nodes", params={"labelSelector": f"{POOL}={place}"})
    for tier in (await api.list("/apis/scheduling.k8s.io/v1/priorityclasses"))["items"]:
        if tier["metadata"]["name"].startswith(f"{place}-"):
            await api.delete(f"/apis/scheduling.k8s.io/v1/priorityclasses/{tier['metadata']['name']}")

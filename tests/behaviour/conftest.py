"""Runs the same tests on two clusters: a simulated one, and a real one with exactly the documented RBAC rules."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from gputally_sim.cluster import SimCluster
from tests.behaviour.product import Product
from tests.behaviour.recorder import Recorder
from tests.behaviour.stage import Stage
from tests.cluster.api import Api, Refused
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import cluster_role, cluster_role_binding
from tests.e2e.conftest import control_plane, skip_without_control_plane

__all__ = ["control_plane"]  # a fixture is found by its name

RBAC = Path(__file__).parents[2] / "deploy" / "rbac.yaml"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip_without_control_plane(items)
    for item in items:  # tests kill servers, which breaks open client sockets
        item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(params=["sim", pytest.param("real", marks=pytest.mark.e2e)])
def plane(request: pytest.FixtureRequest) -> ControlPlane | None:
    """The real control plane, started only if a test needs it; None means the simulated one."""
    return request.getfixturevalue("control_plane") if request.param == "real" else None


@pytest.fixture
async def stage(plane: ControlPlane | None, tmp_path: Path) -> AsyncIterator[Stage]:
    """An empty cluster, with helpers that fill it and run the product on it."""
    async with real(plane, tmp_path) if plane else simulated(tmp_path) as stage:
        yield stage


@asynccontextmanager
async def simulated(scratch: Path) -> AsyncIterator[Stage]:
    async with SimCluster(start_us=time.time_ns() // 1000) as cluster, Api(cluster.url, "any") as api:
        kubeconfig = scratch / "kubeconfig"
        kubeconfig.write_text(json.dumps(kubeconfig_for(cluster.url)))
        async with staged(api, kubeconfig, scratch) as stage:
            yield stage


@asynccontextmanager
async def real(plane: ControlPlane, scratch: Path) -> AsyncIterator[Stage]:
    async with Api(plane.url, plane.token("admin"), plane.ca_file) as api:
        await grant_documented_rights(api)
        async with staged(api, plane.kubeconfig("gputally"), scratch) as stage:
            yield stage
            await stage.clear()


@asynccontextmanager
async def staged(api: Api, kubeconfig: Path, scratch: Path) -> AsyncIterator[Stage]:
    product = Product(scratch, kubeconfig)
    async with Recorder(api) as recorder:
        try:
            yield Stage(api=api, recorder=recorder, product=product)
        finally:
            await product.kill()


async def grant_documented_rights(api: Api) -> None:
    """Bind the rules of deploy/rbac.yaml to the user, and nothing more."""
    documents = yaml.safe_load_all(RBAC.read_text())
    [rules] = [document["rules"] for document in documents if document["kind"] == "ClusterRole"]
    for manifest in (cluster_role("gputally", rules), cluster_role_binding("gputally")):
        try:
            await api.create(manifest)
        except Refused as refusal:
            if refusal.reason != "AlreadyExists":
                raise


def kubeconfig_for(url: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "sim", "cluster": {"server": url}}],
        "users": [{"name": "sim", "user": {"token": "any"}}],
        "contexts": [{"name": "sim", "context": {"cluster": "sim", "user": "sim"}}],
        "current-context": "sim",
    }

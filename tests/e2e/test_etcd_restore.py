"""A control plane whose etcd is restored from a backup: versions decrease, and later changes must not be missed."""

import asyncio
import shutil
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from gputally.kube.api import Access, new_session
from gputally.kube.api import Api as OurApi
from gputally.kube.failures import Backoff
from gputally.kube.reflector import run_reflector
from gputally.kube.watched import Resource
from gputally.model.health import WatchHealth
from gputally.model.kube.kinds import Kind
from gputally.model.kube.pods import Pod
from gputally.model.observation import Upserted
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import gpu_pod, namespace

pytestmark = pytest.mark.e2e

PODS = Resource(kind=Kind.PODS, path="/api/v1/pods", type=Pod)
PATH = "/api/v1/namespaces/red/pods/train"
SERVERS = ("kube-apiserver", "etcd")


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    """A separate control plane, because a restore affects all objects."""
    async with ControlPlane(tmp_path) as plane:
        yield plane


async def test_a_relabel_after_a_restore_is_observed_despite_lower_versions(plane: ControlPlane) -> None:
    async with Api(plane.url, plane.token("admin"), plane.ca_file) as api:
        await api.create(namespace("red"))
        await api.create(gpu_pod("train", "red", gpus=1))
        await stopped(plane, lambda data: shutil.copytree(data, data.with_name("backup")))
        observed: list[str] = []
        watching = asyncio.create_task(watch(plane, observed))
        for number in range(100):
            await api.patch(PATH, {"metadata": {"labels": {"team": f"t{number}"}}})
        await until(lambda: observed[-1:] == ["t99"])

        await stopped(plane, restore)
        await api.patch(PATH, {"metadata": {"labels": {"team": "blue"}}})

        await until(lambda: observed[-1:] == ["blue"])
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def stopped(plane: ControlPlane, work: Callable[[Path], object]) -> None:
    """Call `work` on etcd's data while the servers are stopped."""
    for name in SERVERS:
        plane.kill(name)
    work(plane.scratch / "etcd")
    for name in reversed(SERVERS):
        await plane.start(name)


def restore(data: Path) -> None:
    shutil.rmtree(data)
    shutil.copytree(data.with_name("backup"), data)


async def watch(plane: ControlPlane, observed: list[str]) -> None:
    """Note the team of each form of a pod that is observed."""
    tls = ssl.create_default_context(cafile=str(plane.ca_file))
    access = Access(server=plane.url, login="test", authorization=lambda: f"Bearer {plane.token('admin')}", tls=tls)
    async with new_session() as session:
        api = OurApi(session, access, reread=lambda: access)
        health, backoff = WatchHealth(kind=Kind.PODS), Backoff(Random(1))
        async for batch in run_reflector(
            api, PODS, health=health, clock=lambda: time.time_ns() // 1000, backoff=backoff
        ):
            observed += [
                (each.object.metadata.labels or {}).get("team", "") for each in batch if isinstance(each, Upserted)
            ]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - plain state has no event
            await asyncio.sleep(0.05)

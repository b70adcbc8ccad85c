"""The chart and the image, installed on the real node as a cluster's administrator would.

What this machine lacks is stood in for: the NVIDIA runtime class by a folder of the host with the scripted driver, a
provisioner of volumes by a volume made beforehand, and kube-proxy by tests/node/pod_network.py.
"""

import asyncio
import json
import os
import sqlite3
from asyncio.subprocess import PIPE
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from hack.build import KUBECTL
from hack.image.debian import USER
from tests.behaviour.product import Samples
from tests.chart import helm
from tests.cluster.component import ComponentFailed
from tests.cluster.manifests import Json
from tests.cluster.objects import Items, condition
from tests.node.gpus import ScriptedGpus
from tests.node.images import TAG_OF_TESTS
from tests.node.node import Node
from tests.node.product_image import ProductImage
from tests.nvml.build import SCRIPT_VARIABLE, library

NAMESPACE = "gpu-accounting"
PORTS = {"aggregator": 9836, "agent": 9837}
DRIVER, SCRIPTS = "/driver", "/scripts"
PRICE = "2.21"


class Installation:
    """A release of the chart, whose ledger lies in `scratch`."""

    def __init__(self, node: Node, gpus: ScriptedGpus, scratch: Path) -> None:
        self.node = node
        self.gpus = gpus
        self.scratch = scratch
        self.volume = scratch / "volume"

    async def prepare(self, image: ProductImage) -> None:
        """What an administrator finds or makes before: the image on the node, and a volume."""
        await self.node.containerd.ctr("images", "import", "--snapshotter=native", str(image.archive))
        self.volume.mkdir()
        os.chown(self.volume, USER, USER)  # Kubernetes does it by fsGroup, but not for a folder of the host
        async with self.node.api() as api:
            await api.create(volume("ledger", self.volume))
        (self.scratch / "values.yaml").write_text(json.dumps(values(self.gpus.path.parent)))

    async def helm(self, *arguments: str) -> str:
        """Raises: helm.Refused."""
        access = (f"--kubeconfig={self.node.control_plane.kubeconfig('admin')}", f"--namespace={NAMESPACE}")
        return await asyncio.to_thread(helm.run, *arguments, *access)

    async def install(self) -> None:
        """Returns when both are ready."""
        given = f"--values={self.scratch / 'values.yaml'}"
        await self.helm("install", helm.RELEASE, str(helm.CHART), given, "--create-namespace", "--wait", "--timeout=2m")

    async def uninstall(self) -> None:
        """Returns when no pod is left."""
        await self.helm("uninstall", helm.RELEASE, "--wait", "--timeout=2m")
        async with self.node.api() as api:
            await api.wait_for_items(f"/api/v1/namespaces/{NAMESPACE}/pods", lambda pods: not pods)

    async def pod(self, component: str) -> Json:
        """The one that is ready, once no other is left."""

        def settled(pods: Items) -> bool:
            own = of(pods, component)
            return len(own) == 1 and condition(own[0], "Ready").get("status") == "True"

        async with self.node.api() as api:
            pods = await api.wait_for_items(f"/api/v1/namespaces/{NAMESPACE}/pods", settled)
        [pod] = of(pods, component)
        return pod

    async def scrape(self, component: str) -> Samples:
        """All samples, from the address of the pod."""
        address = (await self.pod(component))["status"]["podIP"]
        url = f"http://{address}:{PORTS[component]}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert answer.status == 200
            families = text_string_to_metric_families(await answer.text())
        return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}

    async def until(self, component: str, holds: Callable[[Samples], bool], *, within: float = 30) -> Samples:
        """The first scrape that `holds`."""
        async with asyncio.timeout(within):
            while not holds(samples := await self.scrape(component)):  # noqa: ASYNC110 - it sends no signal
                await asyncio.sleep(0.2)
        return samples

    async def in_aggregator(self, *command: str, given: bytes = b"") -> bytes:
        """What a command prints that `kubectl exec` runs in the container, with this standard input."""
        access = [f"--kubeconfig={self.node.control_plane.kubeconfig('admin')}", f"--namespace={NAMESPACE}"]
        inside = [*access, "exec", "-i", "deploy/gputally-aggregator", "--", *command]
        process = await asyncio.create_subprocess_exec(KUBECTL.path, *inside, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        printed, problems = await process.communicate(given)
        if process.returncode:
            raise ComponentFailed(f"{' '.join(command)}\n{problems.decode()}")
        return printed

    async def claim(self, name: str) -> Path:
        """The folder behind a new claim."""
        folder = self.scratch / name
        folder.mkdir()
        os.chown(folder, USER, USER)
        claim = {"accessModes": ["ReadWriteOnce"], "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}}
        metadata = {"name": name, "namespace": NAMESPACE}
        async with self.node.api() as api:
            await api.create(volume(name, folder))
            await api.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim})
        return folder

    def ledger(self, query: str) -> list[tuple[Any, ...]]:
        """What the file on the volume says."""
        with closing(sqlite3.connect(f"file:{self.volume / 'gputally.db'}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()


def values(scripts: Path) -> Json:
    """Only what this machine makes necessary, and what the tests ask for."""
    own_driver = {
        "runtimeClassName": "",
        "extraEnv": [
            {"name": "LD_LIBRARY_PATH", "value": DRIVER},
            {"name": SCRIPT_VARIABLE, "value": f"{SCRIPTS}/gpus.txt"},
        ],
        "extraVolumes": [
            {"name": "scripted-driver", "hostPath": {"path": str(library())}},
            {"name": "scripts", "hostPath": {"path": str(scripts)}},
        ],
        "extraVolumeMounts": [
            {"name": "scripted-driver", "mountPath": DRIVER, "readOnly": True},
            {"name": "scripts", "mountPath": SCRIPTS, "readOnly": True},
        ],
    }
    return {
        "image": {
            "registry": "docker.io",
            "repository": "library/gputally",
            "tag": TAG_OF_TESTS,
            "pullPolicy": "Never",
        },
        "configuration": {"tenants": {"rules": [{"from": "namespace-label", "key": "team"}]}},
        "priceBook": {
            "currency": "USD",
            "basis": "node",
            "rules": [{"match": {"gpu_model": "NVIDIA-A100*"}, "price": PRICE, "effective_from": "always"}],
        },
        "aggregator": {"agentsInterval": 1, "zeroSeconds": 0},
        "agent": own_driver,
    }


def volume(name: str, folder: Path) -> Json:
    """Of no class, as the claim of a chart on a cluster without a default class."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "8Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": str(folder)},
        },
    }


def of(pods: Items, component: str) -> Items:
    label = "app.kubernetes.io/component"
    return [pod for pod in pods if pod["metadata"]["labels"].get(label) == component]


def process_of(pod: Json) -> Path:
    """The folder in /proc of gputally's process in the pod."""
    uid = pod["metadata"]["uid"]
    [found] = [folder for folder in Path("/proc").glob("[0-9]*") if is_of(folder, uid)]
    return found


def is_of(folder: Path, uid: str) -> bool:
    with suppress(OSError):  # it ended meanwhile
        return uid in (folder / "cgroup").read_text() and b"gputally" in (folder / "cmdline").read_bytes()
    return False


def status_of(process: Path) -> dict[str, Sequence[str]]:
    """What the kernel says of it, by its names."""
    lines = (line.partition(":") for line in (process / "status").read_text().splitlines())
    return {name: rest.split() for name, _, rest in lines}


def mounts_of(process: Path) -> dict[str, Sequence[str]]:
    """The options of what it sees mounted, by place."""
    lines = (line.split() for line in (process / "mountinfo").read_text().splitlines())
    return {line[4]: line[5].split(",") for line in lines}

"""A real node, with a control plane of its own: kubelet, containerd, runc, and GPUs that are only names."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self
from uuid import NAMESPACE_DNS, uuid5

from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import GPU, Json, gpu_node, gpu_pod
from tests.cluster.objects import condition
from tests.node.cgroups import pod_cgroups
from tests.node.containerd import Containerd
from tests.node.device_plugin import DevicePlugin, replicas
from tests.node.enclosure import Enclosure
from tests.node.images import BUSYBOX_IMAGE, PAUSE
from tests.node.kubelet import Kubelet
from tests.node.packages import install_missing
from tests.node.pod_resources import Held, held_by_pods

SHARED_GPU = f"{GPU}.shared"
MIG_1G = "nvidia.com/mig-1g.10gb"
_LABELLED = 13
"""Eight whole GPUs, four that are called shared, and one in slices: fewer would say that all of them are shared."""


def uuids(prefix: str, count: int) -> tuple[str, ...]:
    """Made-up ones, the same in each run."""
    return tuple(f"{prefix}-{uuid5(NAMESPACE_DNS, f'{prefix}-{number}.gputally.test')}" for number in range(count))


class Node:
    """All of it lies in `scratch`, logs too, and ends with it; what a test of the agent needs is in the attributes.

    Eight GPUs are offered whole as `nvidia.com/gpu`; a ninth as four `nvidia.com/gpu.shared`; two slices of a tenth as
    `nvidia.com/mig-1g.10gb`. Tests change that through `plugin`, and change it back.
    Its name resolves to loopback, where the API server reaches its kubelet: `kubectl exec` works.
    """

    def __init__(self, scratch: Path, *, name: str = "localhost") -> None:
        self.name = name
        self.whole_gpus = uuids("GPU", 10)[:8]
        self.shared_gpu, self.sliced_gpu = uuids("GPU", 10)[8:]
        self.mig_devices = uuids("MIG", 2)
        (scratch / "control-plane").mkdir(parents=True)
        self.control_plane = ControlPlane(scratch / "control-plane", service_accounts=True)
        self.enclosure = Enclosure(scratch / "inside")
        self.containerd = Containerd(self.enclosure, scratch / "containerd")
        self.kubelet = Kubelet(
            self.enclosure,
            scratch / "kubelet",
            kubeconfig=self.control_plane.kubeconfig("admin"),
            runtime=self.containerd.endpoint,
            name=name,
            labels=discovered_labels(name),
        )
        self.plugin = DevicePlugin(self.kubelet.device_plugins, self.standard_offer)
        self.pod_resources = self.kubelet.pod_resources

    @property
    def gpus(self) -> tuple[str, ...]:
        """The UUIDs of all physical GPUs, in the order in which a driver would number them."""
        return (*self.whole_gpus, self.shared_gpu, self.sliced_gpu)

    @property
    def standard_offer(self) -> dict[str, Sequence[str]]:
        """Device ids by resource, as the plugin offers them at first."""
        return {GPU: self.whole_gpus, SHARED_GPU: replicas(self.shared_gpu, 4), MIG_1G: self.mig_devices}

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(install_missing)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.control_plane)
            stack.enter_context(pod_cgroups())
            stack.enter_context(self.enclosure)
            stack.callback(self.containerd.kill)
            await self.start_containerd()
            stack.callback(self.kubelet.kill)
            await self.kubelet.start()
            stack.enter_context(self.plugin)
            await self.ready()
            self.stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stack.aclose()

    async def start_containerd(self) -> None:
        self.containerd.launch()
        await self.containerd.ready()
        await self.containerd.load(PAUSE, BUSYBOX_IMAGE)

    def api(self) -> Api:
        """As the user `admin`."""
        plane = self.control_plane
        return Api(plane.url, plane.token("admin"), plane.ca_file)

    async def ready(self) -> None:
        """Return once pods are scheduled here and all devices are offered."""
        wanted = {name: str(len(ids)) for name, ids in self.standard_offer.items()}
        async with self.api() as api:
            await api.wait_for(f"/api/v1/nodes/{self.name}", lambda node: node is not None and offers(node, wanted))

    def held(self) -> dict[str, Held]:
        """What pods hold, as the kubelet says: device ids by resource, by `namespace/name`; only pods that hold any."""
        return {pod: held for pod, held in held_by_pods(self.pod_resources).items() if held}

    def output_of(self, pod: Json) -> str:
        """What the container `main` of the pod has written so far."""
        meta = pod["metadata"]
        folder = self.kubelet.logs / f"{meta['namespace']}_{meta['name']}_{meta['uid']}" / "main"
        lines = (line for file in sorted(folder.glob("*.log")) for line in file.read_text().splitlines())
        return "\n".join(line.split(" ", 3)[3] for line in lines)  # after a time, a stream and a flag


def discovered_labels(name: str) -> dict[str, str]:
    """What NVIDIA's GPU feature discovery would write of as many GPUs as the offer needs without replicas."""
    labels: dict[str, str] = gpu_node(name, gpus=_LABELLED)["metadata"]["labels"]
    return {label: value for label, value in labels.items() if label.startswith(GPU)}


def offers(node: Json, resources: dict[str, str]) -> bool:
    """Ready, without taints, and so many of each are allocatable."""
    untainted = not node["spec"].get("taints") and condition(node, "Ready").get("status") == "True"
    return untainted and resources.items() <= node["status"]["allocatable"].items()


def node_pod(  # noqa: PLR0913 - each is a word in the sentence that a test says
    name: str,
    namespace: str,
    *,
    gpus: int = 0,
    resource: str = GPU,
    image: str = BUSYBOX_IMAGE.reference,
    command: Sequence[str] = ("sleep", "1000000"),
    grace_seconds: int = 1,
    **spec: object,
) -> Json:
    """A pod that the node can run: `gpus` of `resource` for a container that sleeps and does not heed SIGTERM."""
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "Never",
        "command": list(command),
        "resources": {"limits": {resource: str(gpus)} if gpus else {}},
    }
    fitting: Json = {
        "containers": [container],
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": grace_seconds,
    }
    return gpu_pod(name, namespace, **(fitting | spec))


async def eventually(predicate: Callable[[], bool], *, within: float = 30) -> None:
    """Return once it holds; for what has no watch, like the kubelet's PodResources."""
    async with asyncio.timeout(within):
        while not await asyncio.to_thread(predicate):  # noqa: ASYNC110 - there is nothing to wait on
            await asyncio.sleep(0.05)

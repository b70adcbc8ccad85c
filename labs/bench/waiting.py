"""Pods that wait for GPUs, and pods without GPUs, beside the load."""

from collections.abc import Iterator

from labs.bench import workload
from labs.bench.load import SPARE_NODES, Loader, each
from tests.cluster.manifests import GPU, Json, metadata, path

FIRST_WAITING = 2_000_000
FIRST_BLOCK = 3_000_000
FIRST_OTHER = 4_000_000
CPU_NODES = 1000
_ON_GPU_NODES = 5
"""Every fifth pod without GPUs runs on a node with GPUs."""


def block(loader: Loader, number: int) -> Json:
    """A pod with one GPU of a spare node: no pod that requests all of them fits there."""
    number %= SPARE_NODES
    on = loader.spare_node(number)
    return workload.pod(FIRST_BLOCK + number, name=f"block-{number}", place=workload.MARKER, tier=_HIGHEST, on=on)


async def put(loader: Loader, pod: Json, *, number: int) -> None:
    """Create a bound pod, and let it run."""
    created = (await loader.api.create(pod))["metadata"]["creationTimestamp"]
    await loader.api.patch(f"{path(pod)}/status", workload.running(number, bound=created, started=created))


async def block_spare_nodes(loader: Loader) -> None:
    """Put one pod on each spare node."""
    for number in range(SPARE_NODES):
        await put(loader, block(loader, number), number=FIRST_BLOCK + number)


async def wait_for_gpus(loader: Loader, pods: int) -> None:
    """Create pods that request all GPUs of a node of some model, which the scheduler could not bind."""

    async def create(number: int) -> None:
        pod = waiting_pod(number)
        await loader.api.create(pod)
        await loader.api.patch(f"{path(pod)}/status", {"status": {"phase": "Pending", "conditions": [_UNSCHEDULABLE]}})

    await each(range(FIRST_WAITING, FIRST_WAITING + pods), create)


def waiting_pod(number: int) -> Json:
    """A pod of any tier that requests eight GPUs of one model."""
    pod = workload.pod(number, name=f"waiting-{number}")
    del pod["spec"]["nodeName"]
    pod["spec"]["tolerations"] = [{"operator": "Exists"}]  # nobody removes the taint that new nodes get
    pod["spec"]["nodeSelector"] = {f"{GPU}.product": list(workload.MODELS)[number % len(workload.MODELS)]}
    pod["spec"]["containers"][0]["resources"] = {"limits": {GPU: str(workload.GPUS_PER_NODE)}}
    return pod


async def add_others(loader: Loader, pods: int) -> None:
    """Create pods without GPUs: some on nodes with GPUs, the others on nodes without."""
    await each(map(_cpu_node, range(CPU_NODES)), loader.api.create)
    await each(_others(loader, pods), loader.api.create)


def _others(loader: Loader, pods: int) -> Iterator[Json]:
    for number in range(pods):
        place = f"team-{number % workload.TEAMS:02d}"
        on_gpus = number % _ON_GPU_NODES == 0
        node = workload.node_of(number % loader.pods) if on_gpus else f"cpu-node-{number % CPU_NODES:04d}"
        pod = workload.pod(FIRST_OTHER + number, name=f"other-{number}", place=place, tier=_HIGHEST, on=node)
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "128Mi"}}
        yield pod


def _cpu_node(number: int) -> Json:
    resources = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    labels = {"kubernetes.io/hostname": f"cpu-node-{number:04d}"}
    status = {"capacity": resources, "allocatable": resources}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata(labels["kubernetes.io/hostname"], labels=labels),
            "status": status}  # fmt: skip


_HIGHEST = next(iter(workload.TIERS))
_UNSCHEDULABLE: Json = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/2516 nodes are available: 2516 Insufficient nvidia.com/gpu.",
}

"""The GPU nodes of a scenario."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import NAMESPACE_URL, uuid5

from gputally_sim.documents import Doc
from gputally_sim.node.gpus import CLIENTS
from gputally_sim.node.pods import GPU

POOL_LABEL = "cloud.google.com/gke-nodepool"
PRODUCT_LABEL = "nvidia.com/gpu.product"
GPU_COUNT = "nvidia.com/gpu.count"
_ZONES = ("europe-west4-a", "europe-west4-b")


@dataclass(frozen=True)
class NodePool:
    """Identical nodes with `gpus` of one `product`, labelled as by GPU Feature Discovery.

    With `clients`, they are nodes of GKE without discovery, where as many clients share each GPU.
    """

    name: str
    count: int
    gpus: int = 1
    product: str = "NVIDIA-A100-SXM4-80GB"
    accelerator: str = "nvidia-a100-80gb"
    memory_mib: int = 81920
    instance_type: str = "a2-ultragpu-1g"
    clients: int = 0


@dataclass(frozen=True)
class Fleet:
    """All GPU nodes."""

    pools: tuple[NodePool, ...]

    @property
    def gpus(self) -> int:
        """GPUs in total."""
        return sum(pool.count * pool.gpus for pool in self.pools)

    def nodes(self) -> Iterator[Doc]:
        """The Node objects, pool by pool."""
        for pool in self.pools:
            for index in range(pool.count):
                yield node(pool, index)


ONE_GPU_NODES = Fleet((NodePool("a100-pool", count=8),))
"""Scenario S1: eight nodes with one GPU each."""

EIGHT_GPU_NODES = Fleet(
    (
        NodePool("h100-pool", 2, 8, "NVIDIA-H100-80GB-HBM3", "nvidia-h100-80gb", 81559, "a3-highgpu-8g"),
        NodePool("a100-pool", 1, 8, instance_type="a2-ultragpu-8g"),
    )
)
"""Scenario S2: three nodes with eight GPUs each, of two models."""

THREE_MODELS = Fleet(
    (
        NodePool("h100-pool", 2, 8, "NVIDIA-H100-80GB-HBM3", "nvidia-h100-80gb", 81559, "a3-highgpu-8g"),
        NodePool("a100-pool", 2, 4, instance_type="a2-ultragpu-4g"),
        NodePool("t4-pool", 2, 4, "Tesla-T4", "nvidia-tesla-t4", 15360, "n1-standard-96"),
    )
)
"""Scenario `waits`: two nodes of each model."""


def node(pool: NodePool, index: int) -> Doc:
    """The `index`-th Node of `pool`."""
    name = f"{pool.name}-{index}"
    return gpu_node(name, pool, zone=_ZONES[index % len(_ZONES)], offered={GPU: pool.gpus * (pool.clients or 1)})


def _gpu_labels(pool: NodePool) -> dict[str, str]:
    if pool.clients:
        return {
            "cloud.google.com/gke-accelerator": pool.accelerator,
            "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
            CLIENTS: str(pool.clients),
        }
    return {
        "nvidia.com/gpu.present": "true",
        PRODUCT_LABEL: pool.product,
        GPU_COUNT: str(pool.gpus),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.memory": str(pool.memory_mib),
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": "true",
        "nvidia.com/mig.strategy": "single",
    }


def gpu_node(name: str, pool: NodePool, *, zone: str = _ZONES[0], offered: Mapping[str, int], machine: str = "") -> Doc:
    """A Node of `pool` that offers its GPUs as these resources; `machine` defaults to its name."""
    units = max(pool.gpus, *offered.values())
    general = {"cpu": str(12 * units), "memory": f"{170 * units}Gi", "pods": "110"}
    quantities = general | {resource: str(units) for resource, units in offered.items()}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": pool.instance_type,
        "topology.kubernetes.io/region": "europe-west4",
        "topology.kubernetes.io/zone": zone,
        POOL_LABEL: pool.name,
        "accelerator": pool.accelerator,
    } | _gpu_labels(pool)
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": f"sim:///{name}"},
        "status": {
            "capacity": quantities,
            "allocatable": quantities,
            "nodeInfo": {"systemUUID": str(uuid5(NAMESPACE_URL, f"sim:///{machine or name}"))},
        },
    }

"""GPU sharing on a node of GKE, from the labels of its node pool.

GKE's device plugin offers the slices of each GPU, and the clients that share a GPU or a slice, as `nvidia.com/gpu`.

Sources: cloud.google.com/kubernetes-engine/docs, "About GPU sharing strategies in GKE" and "Run multi-instance GPUs".
"""

import re
from typing import Final

from gputally.shares.scheme import Labels, number

ACCELERATOR: Final = "cloud.google.com/gke-accelerator"
COUNT: Final = "cloud.google.com/gke-accelerator-count"
CLIENTS: Final = "cloud.google.com/gke-max-shared-clients-per-gpu"
PARTITION: Final = "cloud.google.com/gke-gpu-partition-size"
_NAMED_MEMORY: Final = re.compile(r"-(\d+)gb")
_A100_40GB: Final = "nvidia-tesla-a100"
_MIB_PER_GB: Final = 1024


def clients(node: Labels) -> int:
    """The clients that share a GPU, or a slice of one; 0 if nothing is shared."""
    shared = number(node.get(CLIENTS))
    return shared if shared > 1 else 0


def partition(node: Labels) -> str:
    """The MIG profile of the slices that are offered as GPUs, such as 1g.5gb; "" for whole GPUs."""
    return node.get(PARTITION, "")


def count(node: Labels) -> int:
    """Physical GPUs; 0 if unknown. Nodes with TPUs have the same label."""
    return number(node.get(COUNT)) if ACCELERATOR in node else 0


def memory_mib(node: Labels) -> int:
    """MiB of a GPU by the name of its model, 0 if unknown."""
    name = node.get(ACCELERATOR, "")
    named = _NAMED_MEMORY.search(name)
    return (int(named[1]) if named else 40 if name == _A100_40GB else 0) * _MIB_PER_GB

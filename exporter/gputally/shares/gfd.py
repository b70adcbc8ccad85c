"""GPU sharing on a node, from the labels of GPU Feature Discovery.

Source: NVIDIA/k8s-device-plugin internal/lm/resource.go, baseLabeler; internal/lm/mig-strategy.go.
"""

import re
from typing import Final

from gputally.shares.scheme import Labels, number

PREFIX: Final = "nvidia.com/"
REPLICAS: Final = ".replicas"
COUNT: Final = "nvidia.com/gpu.count"
PRODUCT: Final = "nvidia.com/gpu.product"
MEMORY: Final = "nvidia.com/gpu.memory"
STRATEGY: Final = "nvidia.com/mig.strategy"
SHARED: Final = "-SHARED"
_MIG: Final = "-MIG-"
_MIB_PER_GB: Final = 1024
_NAMED_MEMORY: Final = re.compile(r"-(\d+)GB")
RENAMED: Final = ".shared"
"""Suffix of shared resources with `renameByDefault`; their labels keep the name without it.

Source: NVIDIA/k8s-device-plugin api/config/v1/consts.go, DefaultSharedResourceNameSuffix.
"""


def replicas_label(resource: str) -> str:
    """The key of the label with the replicas of `resource`."""
    return f"{resource.removesuffix(RENAMED)}{REPLICAS}"


def replicas(resource: str, node: Labels) -> int:
    """Replicas of one unit of `resource`; 0 if it is not shared, such as GPUs with MIG enabled."""
    shared = number(node.get(replicas_label(resource)))
    return shared if shared > 1 and resource.startswith(PREFIX) else 0


def product(node: Labels) -> str:
    """The product name of the node's GPUs; it includes the slice profile under the single MIG strategy."""
    return node.get(PRODUCT, "").removesuffix(SHARED)


def single_profile(node: Labels) -> str:
    """The profile of the slices that the single MIG strategy exposes as GPUs, "" for other strategies."""
    name = product(node)
    return name.split(_MIG)[1] if node.get(STRATEGY) == "single" and _MIG in name else ""


def memory_mib(node: Labels) -> int:
    """MiB of a whole GPU, 0 if unknown. Under the single MIG strategy, the label contains the MiB of a slice."""
    if not single_profile(node):
        return number(node.get(MEMORY))
    named = _NAMED_MEMORY.search(product(node))
    return int(named[1]) * _MIB_PER_GB if named else 0

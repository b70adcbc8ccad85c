"""What the labels of GPU Feature Discovery say of how a node's GPUs are shared.

Source: NVIDIA/k8s-device-plugin internal/lm/resource.go, baseLabeler; internal/lm/mig-strategy.go.
"""

import re
from typing import Final

from gputally.shares.scheme import Labels

PREFIX: Final = "nvidia.com/"
REPLICAS: Final = ".replicas"
PRODUCT: Final = "nvidia.com/gpu.product"
MEMORY: Final = "nvidia.com/gpu.memory"
STRATEGY: Final = "nvidia.com/mig.strategy"
_SHARED: Final = "-SHARED"
_MIG: Final = "-MIG-"
_MIB_PER_GB: Final = 1024
_NAMED_MEMORY: Final = re.compile(r"-(\d+)GB")
_RENAMED: Final = ".shared"
"""Added to the name of a resource that is shared, with `renameByDefault`; its labels keep the plain name.

Source: NVIDIA/k8s-device-plugin api/config/v1/consts.go, DefaultSharedResourceNameSuffix.
"""


def replicas(resource: str, node: Labels) -> int:
    """How many share one unit of `resource`; 0 where it is not shared, as GPUs with MIG on are not."""
    shared = number(node.get(f"{resource.removesuffix(_RENAMED)}{REPLICAS}"))
    return shared if shared > 1 and resource.startswith(PREFIX) else 0


def product(node: Labels) -> str:
    """What the node's GPUs are called; of slices, too, under the single MIG strategy."""
    return node.get(PRODUCT, "").removesuffix(_SHARED)


def single_profile(node: Labels) -> str:
    """The profile of the slices that stand for GPUs under the single MIG strategy, "" under any other."""
    name = product(node)
    return name.split(_MIG)[1] if node.get(STRATEGY) == "single" and _MIG in name else ""


def memory_mib(node: Labels) -> int:
    """MiB of a whole GPU, 0 when unknown. Under the single MIG strategy the label tells that of a slice."""
    if not single_profile(node):
        return number(node.get(MEMORY))
    named = _NAMED_MEMORY.search(product(node))
    return int(named[1]) * _MIB_PER_GB if named else 0


def number(text: str | None) -> int:
    """The number that a label holds; 0 without one."""
    return int(text) if text and text.isascii() and text.isdigit() else 0

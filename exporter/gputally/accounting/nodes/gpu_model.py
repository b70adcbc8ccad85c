"""The GPU model of a node, by its labels."""

import re
from collections.abc import Mapping

UNKNOWN = "unknown"
"""The model of GPUs that no label names."""

LABELS = (
    "nvidia.com/gpu.product",  # GPU Feature Discovery, the only one that reads the device itself
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "amd.com/gpu.product-name",  # AMD's node labeller
    "gpu.intel.com/product",  # Intel's rules for Node Feature Discovery
    "accelerator",  # AKS, and hand-labelled fleets; last, because anything may be written there
)
_LAYOUT = re.compile(r"(-MIG-.+|-SHARED)$")
"""GPU Feature Discovery appends how the GPU is divided; the hardware, and its price, stay the same."""


def gpu_model_of(node_labels: Mapping[str, str]) -> str:
    """The product name as the first of the labels spells it, without its sharing suffix; else `unknown`."""
    product = next((node_labels[key] for key in LABELS if node_labels.get(key)), UNKNOWN)
    return _LAYOUT.sub("", product)

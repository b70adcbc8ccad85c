"""The GPU model of a node, by its labels, and of a GPU, by its driver: spelled the same, so that series join."""

import re
from collections.abc import Iterator, Mapping

from gputally.model.kube import PodSpec

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
_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9_. -]")


def gpu_model_of(node_labels: Mapping[str, str]) -> str:
    """The product name as the first of the labels spells it, without its sharing suffix; else `unknown`."""
    product = next((node_labels[key] for key in LABELS if node_labels.get(key)), UNKNOWN)
    return _LAYOUT.sub("", product)


def gpu_model_named(name: str) -> str:
    """The driver's product `name` as GPU Feature Discovery writes it into the label; `unknown` for an empty one.

    Source: NVIDIA/k8s-device-plugin internal/lm/resource.go, sanitise.
    """
    return "-".join(_NOT_IN_LABELS.sub("", name).split()) or UNKNOWN


def gpu_model_selected(spec: PodSpec) -> str:
    """The GPU model that the pod requires of its node; "" if it requires none, or may have one of several."""
    if spec.node_selector is None and spec.affinity is None:
        return ""
    required = dict(_required_labels(spec)) | (spec.node_selector or {})
    model = gpu_model_of(required)
    return "" if model == UNKNOWN else model


def _required_labels(spec: PodSpec) -> Iterator[tuple[str, str]]:
    """Labels that the required node affinity fixes to one value; alternatives fix none."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    if len(terms) == 1:
        for each in terms[0].match_expressions or ():
            if each.operator == "In" and each.values and len(each.values) == 1:
                yield each.key, each.values[0]

"""The GPU model of a node from its labels, and of a GPU from its driver, in one spelling, so that series join."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gputally.model.kube import PodSpec
from gputally.model.objects.affinity import NodeSelectorTerm
from gputally.shares import gke

UNKNOWN = "unknown"
"""The model of GPUs without such a label."""

LABELS = (
    "nvidia.com/gpu.product",  # GPU Feature Discovery, which reads the device itself
    gke.ACCELERATOR,
    "karpenter.k8s.aws/instance-gpu-name",
    "eks.amazonaws.com/instance-gpu-name",  # EKS Auto Mode
    "karpenter.azure.com/sku-gpu-name",
    "amd.com/gpu.product-name",  # AMD's node labeller
    "gpu.intel.com/product",  # Intel's rules for Node Feature Discovery
    "accelerator",  # manually labelled fleets; late, because it may contain anything
    "gpu-type",  # manually labelled fleets
)
VENDORS = frozenset({"amd", "habana", "huawei", "intel", "nvidia"})
"""Values of such labels that name a vendor and no model: AKS writes `accelerator: nvidia`."""
_LAYOUT = re.compile(r"(-MIG-.+|-SHARED)$")
"""GPU Feature Discovery appends the sharing mode; hardware and price are the same."""
_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9_. -]")


def gpu_model_of(node_labels: Mapping[str, str]) -> str:
    """The product name from the first label that has one, without a sharing suffix; `unknown` without any."""
    named = (node_labels.get(key, "") for key in LABELS)
    return _LAYOUT.sub("", next((name for name in named if name and name.lower() not in VENDORS), UNKNOWN))


def model_values(labels: Iterable[tuple[str, str]] | None) -> Iterator[str]:
    """The products that any label for the GPU model of a node names: by each of them, a pod may select the node."""
    return (_LAYOUT.sub("", value) for key, value in labels or () if key in LABELS and value)


def gpu_model_named(name: str) -> str:
    """The driver's product `name` as GPU Feature Discovery writes it into the label; `unknown` for an empty one.

    Source: NVIDIA/k8s-device-plugin internal/lm/resource.go, sanitise.
    """
    return "-".join(_NOT_IN_LABELS.sub("", name).split()) or UNKNOWN


def gpu_model_selected(spec: PodSpec) -> str:
    """The GPU model that the pod's node selector or affinity requires; "" for none or alternatives."""
    if spec.node_selector is None and spec.affinity is None:
        return ""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    model = gpu_model_of(required_labels(terms) | (spec.node_selector or {}))
    return "" if model == UNKNOWN else model


def required_labels(terms: Sequence[NodeSelectorTerm]) -> dict[str, str]:
    """Labels that the terms of a required node affinity limit to one value; alternatives limit none."""
    if len(terms) != 1:
        return {}
    return {
        each.key: each.values[0]
        for each in terms[0].match_expressions or ()
        if each.operator == "In" and each.values and len(each.values) == 1
    }

"""The GPU model of a node from its labels, and of a GPU from its driver, in one spelling, so that series join."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from gputally.accounting.base.compact import shared
from gputally.model.kube.pods import NodeSelectorTerm, PodSpec
from gputally.model.node_record import NodeRecord
from gputally.shares import gke
from gputally.shares.schemes import NodeLabels

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


@lru_cache(maxsize=1024)
def model_values(labels: NodeLabels) -> tuple[str, ...]:
    """The products that any label for the GPU model of a node names: by each of them, a pod may select the node."""
    return tuple(dict.fromkeys([_LAYOUT.sub("", value) for key, value in labels if key in LABELS and value]))


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


class ModelNames:
    """The models of the existing nodes by the values of their labels for models, counted as nodes change."""

    def __init__(self) -> None:
        self._pairs: dict[str, Sequence[tuple[str, str]]] = {}
        """Value and model, by the UID of the node."""
        self._nodes = Counter[tuple[str, str]]()
        self._read: Mapping[str, str] | None = None

    def put(self, record: NodeRecord) -> None:
        """A node is new, or has changed."""
        pairs: Sequence[tuple[str, str]] = ()
        if record.gone_us is None and record.facts:
            facts = record.facts[-1][1]
            pairs = shared(tuple([(value, facts.gpu_model) for value in model_values(facts.labels)]))
        if pairs != self._pairs.get(record.uid, ()):
            self.drop(record.uid)
            self._pairs[record.uid] = pairs
            self._count(pairs, 1)

    def drop(self, uid: str) -> None:
        """A node does not exist any more, if it did."""
        self._count(self._pairs.pop(uid, ()), -1)

    def read(self) -> Mapping[str, str]:
        """The model of each value, "" of one that nodes of several models have; a model stands for itself."""
        if self._read is None:
            several = Counter(value for value, _ in self._nodes)
            found = {value: model if several[value] == 1 else "" for value, model in self._nodes}
            self._read = found | {model: model for _, model in self._nodes}
        return self._read

    def _count(self, pairs: Iterable[tuple[str, str]], sign: int) -> None:
        for each in pairs:
            self._nodes[each] += sign
            if self._nodes[each] in (0, sign):  # the last one is gone, or the first one is new
                self._read = None
            if not self._nodes[each]:
                del self._nodes[each]

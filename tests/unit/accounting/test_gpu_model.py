from typing import Any

import msgspec
import pytest

from gputally.accounting.nodes.gpu_model import gpu_model_named, gpu_model_of, gpu_model_selected
from gputally.model.kube import PodSpec

GFD = "nvidia.com/gpu.product"


@pytest.mark.parametrize(
    "product",
    [
        "NVIDIA-A100-SXM4-80GB",
        "NVIDIA-A100-SXM4-80GB-SHARED",
        "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb",
        "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED",
        "NVIDIA-A100-SXM4-80GB-MIG-INVALID",
    ],
)
def test_how_a_gpu_is_divided_is_not_part_of_its_model(product: str) -> None:
    assert gpu_model_of({GFD: product}) == "NVIDIA-A100-SXM4-80GB"


@pytest.mark.parametrize(
    "key",
    [
        "cloud.google.com/gke-accelerator",
        "karpenter.k8s.aws/instance-gpu-name",
        "amd.com/gpu.product-name",
        "gpu.intel.com/product",
        "accelerator",
        "gpu-type",
    ],
)
def test_every_other_label_names_the_model_when_feature_discovery_does_not_run(key: str) -> None:
    assert gpu_model_of({key: "some-gpu"}) == "some-gpu"
    assert gpu_model_of({key: "some-gpu", GFD: "NVIDIA-L4"}) == "NVIDIA-L4"


def test_a_node_without_any_label_has_an_unknown_model() -> None:
    assert gpu_model_of({"node.kubernetes.io/instance-type": "p5.48xlarge", "accelerator": ""}) == "unknown"


@pytest.mark.parametrize(
    ("driver", "label"),
    [
        ("NVIDIA H100 80GB HBM3", "NVIDIA-H100-80GB-HBM3"),
        ("NVIDIA A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB"),
        ("Quadro RTX 6000/8000", "Quadro-RTX-60008000"),
        ("NVIDIA RTX 6000  Ada Generation ", "NVIDIA-RTX-6000-Ada-Generation"),
        ("", "unknown"),
    ],
)
def test_agent_and_aggregator_spell_a_model_alike(driver: str, label: str) -> None:
    assert gpu_model_named(driver) == label
    assert gpu_model_of({GFD: label}) == label


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    """A pod spec whose node affinity requires one of the terms."""
    selector = {"nodeSelectorTerms": [{"matchExpressions": [term]} for term in terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


def of(*values: str, operator: str = "In") -> dict[str, Any]:
    return {"key": GFD, "operator": operator, "values": values}


@pytest.mark.parametrize(
    ("spec", "model"),
    [
        ({"nodeSelector": {GFD: "H100-SHARED", "zone": "a"}}, "H100"),
        ({"nodeSelector": {"zone": "a"}}, ""),
        (required(of("H100")), "H100"),
        (required(of("H100", "A100")), ""),
        (required(of("H100"), of("A100")), ""),
        (required(of("H100", operator="NotIn")), ""),
        (required({"key": GFD, "operator": "Exists"}), ""),
        ({"affinity": {"podAntiAffinity": {}}}, ""),
        ({}, ""),
    ],
)
def test_a_pod_selects_a_model_if_its_node_can_have_no_other(spec: dict[str, Any], model: str) -> None:
    assert gpu_model_selected(msgspec.convert(spec, PodSpec)) == model

import pytest

from gputally.accounting.nodes.gpu_model import gpu_model_named, gpu_model_of

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

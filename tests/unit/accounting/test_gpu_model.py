from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.facts.gpu_model import gpu_model_named, gpu_model_of, gpu_model_selected, model_values
from gputally.model.kube.pods import PodSpec
from tests.core.manifests import NodeForm
from tests.core.replay import Replay

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
        "eks.amazonaws.com/instance-gpu-name",
        "karpenter.azure.com/sku-gpu-name",
        "amd.com/gpu.product-name",
        "gpu.intel.com/product",
        "accelerator",
        "gpu-type",
    ],
)
def test_every_other_label_names_the_model_when_feature_discovery_does_not_run(key: str) -> None:
    assert gpu_model_of({key: "some-gpu"}) == "some-gpu"
    assert gpu_model_of({key: "some-gpu", GFD: "NVIDIA-L4"}) == "NVIDIA-L4"


@pytest.mark.parametrize("vendor", ["nvidia", "NVIDIA", "amd", "intel"])
def test_a_vendor_is_no_model(vendor: str) -> None:
    """AKS labels its GPU nodes `accelerator: nvidia`, and pods select them by that."""
    assert gpu_model_of({"accelerator": vendor}) == "unknown"
    assert gpu_model_of({"accelerator": vendor, "karpenter.azure.com/sku-gpu-name": "A100"}) == "A100"
    assert gpu_model_of({"karpenter.k8s.aws/instance-gpu-name": vendor, "accelerator": "h100"}) == "h100"
    assert gpu_model_selected(msgspec.convert({"nodeSelector": {"accelerator": vendor}}, PodSpec)) == ""


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


class NodeVersion(NamedTuple):
    """A node with the values of two labels for models, "" for none; gone if `is_gone`."""

    name: str
    product: str
    accelerator: str
    is_gone: bool


VERSIONS = st.builds(
    NodeVersion, st.sampled_from("abc"), st.sampled_from(["", "H", "L"]), st.sampled_from(["", "h", "H"]), st.booleans()
)


@given(st.lists(VERSIONS, max_size=20))
def test_the_models_of_values_are_those_of_the_nodes_that_exist(versions: list[NodeVersion]) -> None:
    replay = Replay()
    for at, each in enumerate(versions, start=1):
        pairs = {GFD: each.product, "cloud.google.com/gke-accelerator": each.accelerator}
        labels = {key: value for key, value in pairs.items() if value}
        form = NodeForm(name=each.name, uid=f"uid-{each.name}-{at % 2}", labels=labels, created=at, version=at)
        replay.see(form, at=at)
        if each.is_gone:
            replay.lose(form, at=at)
        of: dict[str, set[str]] = {}
        for account in replay.fleet.nodes.accounts.values():
            facts = account.record.facts[-1][1]
            for value in model_values(facts.labels) if account.record.gone_us is None else ():
                of.setdefault(value, set()).add(facts.gpu_model)
        expected = {value: next(iter(found)) if len(found) == 1 else "" for value, found in of.items()}
        expected |= {model: model for found in of.values() for model in found}
        assert replay.fleet.nodes.models() == expected

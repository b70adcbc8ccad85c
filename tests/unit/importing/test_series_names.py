"""Names of Kubernetes and of Prometheus, as kube-state-metrics converts them."""

import re

import pytest

from gputally.importing.kube_state.series_names import any_of, field, gpu_pattern, key_name, quoted, resource_named
from gputally.model.rules import ResourceRule, Rules

RULES = Rules(resources=(ResourceRule(pattern="example.com/vgpu-*"), ResourceRule(pattern="example.com/vgpu-quarter")))


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("team", "label_team"),
        ("nvidia.com/gpu.product", "label_nvidia_com_gpu_product"),
        ("eks.amazonaws.com/capacityType", "label_eks_amazonaws_com_capacity_type"),
        ("Team", "label_team"),
    ],
)
def test_a_label_key_is_written_in_snake_case(key: str, name: str) -> None:
    assert key_name("label", key) == name


@pytest.mark.parametrize(
    ("sanitised", "name"),
    [
        ("nvidia_com_gpu", "nvidia.com/gpu"),
        ("nvidia_com_gpu_shared", "nvidia.com/gpu.shared"),
        ("nvidia_com_mig_1g_5gb", "nvidia.com/mig-1g.5gb"),
        ("nvidia_com_mig_1c_7g_80gb", "nvidia.com/mig-1c.7g.80gb"),
        ("nvidia_com_mig_1g_10gb_me", "nvidia.com/mig-1g.10gb.me"),
        ("amd_com_gpu", "amd.com/gpu"),
        ("example_com_vgpu_quarter", "example.com/vgpu-quarter"),
        ("example_com_vgpu_half", "example.com/vgpu-half"),
        ("cpu", ""),
        ("nvidia_com_gpux", ""),
    ],
)
def test_a_gpu_resource_has_its_name_again_and_is_selected(sanitised: str, name: str) -> None:
    assert resource_named(sanitised, RULES) == name
    assert bool(re.fullmatch(gpu_pattern(RULES), sanitised)) is bool(name)


def test_texts_are_quoted_for_promql() -> None:
    assert quoted('a"b\\c') == '"a\\"b\\\\c"'
    assert any_of(["b.example", "a-1"]) == '"a-1|b\\\\.example"'


def test_a_label_that_the_target_has_too_was_renamed() -> None:
    assert field({"namespace": "monitoring", "exported_namespace": "red"}, "namespace") == "red"

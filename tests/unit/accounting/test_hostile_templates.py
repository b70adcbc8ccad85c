"""Templates are limited by the size of their objects alone, and nothing validates those of Workloads."""

import tracemalloc
from collections.abc import Callable

import msgspec
import pytest

from gputally.accounting.uncreated.missing_pods import Lacking, lacking_of_template
from gputally.model.kube.meta import Owner, OwnerReference
from gputally.model.kube.pods import PodTemplate
from gputally.model.rules import Rules
from gputally.placement.resource_requests import amount_of
from gputally.shares.request import requested
from gputally.shares.schemes import rule_of
from tests.core.manifests import Json

MEGABYTE = 10**6
GPU = "nvidia.com/gpu"
MANY = [f"{number:09}" for number in range(MEGABYTE // 12)]
KEPT_BYTES = 10_000
"""Of one workload."""


def required(*values: str) -> Json:
    matching = [{"key": "kubernetes.io/hostname", "operator": "In", "values": values}]
    terms = {"nodeSelectorTerms": [{"matchExpressions": matching}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def tolerating(*keys: str) -> Json:
    return {"tolerations": [{"key": each, "operator": "Exists", "effect": "NoSchedule"} for each in keys]}


def lacking(spec: Json, more: Json | None = None) -> Lacking | None:
    containers = [{"name": "c", "resources": {"limits": {GPU: "1"} | (more or {})}}]
    template = msgspec.json.decode(msgspec.json.encode({"spec": {"containers": containers} | spec}), type=PodTemplate)
    owner = Owner("ml", OwnerReference(kind="Job", name="j", uid="u", api_version="batch/v1"))
    return lacking_of_template(owner, template, None, 1, Rules())


TOO_MUCH: dict[str, tuple[Json, Json]] = {
    "values": (required(*MANY), {}),
    "a long value": (required("x" * MEGABYTE), {}),
    "a long selector": ({"nodeSelector": {"pool": "x" * MEGABYTE}}, {}),
    "selectors": ({"nodeSelector": dict.fromkeys(MANY, "x")}, {}),
    "tolerations": (tolerating(*MANY), {}),
    "a long toleration": (tolerating("x" * MEGABYTE), {}),
    "resources": ({}, {f"example.com/{each}": "1" for each in MANY[:30_000]}),
    "resources with long names": ({}, {f"example.com/{each}{'x' * 290}": "1" for each in MANY[:60]}),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_of_a_template_with_much_about_nodes_only_the_gpus_are_kept(name: str) -> None:
    found = lacking(*TOO_MUCH[name])

    assert found
    assert found.quantity == 1_000_000
    assert found.needs is None


@pytest.mark.parametrize(
    "more",
    [
        {f"example.com/{'x' * MEGABYTE}": "1"},
        {f"nvidia.com/mig-{'x' * MEGABYTE}": "1"},
        {GPU: "1" + "0" * MEGABYTE},
        {"cpu": "1" + "0" * MEGABYTE},
    ],
)
def test_a_template_of_which_the_api_server_accepts_no_pod_lacks_none_and_is_not_remembered(more: Json) -> None:
    lacking({})
    known = [each.cache_info().currsize for each in (amount_of, requested, rule_of)]

    assert lacking({}, more) is None
    assert [each.cache_info().currsize for each in (amount_of, requested, rule_of)] == known


def test_usual_rules_about_nodes_are_kept() -> None:
    hosts = [f"gpu-node-{number:03}" for number in range(16)]
    found = lacking(required(*hosts) | tolerating(GPU) | {"nodeSelector": {"pool": "a"}})

    assert found
    assert found.needs
    assert found.needs.node_selector == (("pool", "a"),)
    assert found.needs.node_terms
    assert len(found.needs.tolerations) == 1


LARGEST: dict[str, Callable[[int], Json]] = {
    "values": lambda number: required(*(f"{number:05}-{each:020}" for each in range(29))),
    "tolerations": lambda number: tolerating(*(f"{number:05}-{each:05}" for each in range(32))),
}


@pytest.mark.parametrize("name", LARGEST)
def test_what_is_kept_of_different_templates_needs_little_memory(name: str) -> None:
    lacking(LARGEST[name](0))
    tracemalloc.start()
    kept = [lacking(LARGEST[name](number)) for number in range(1, 101)]
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert all(each and each.needs for each in kept)
    assert used < len(kept) * KEPT_BYTES, f"{used / len(kept):.0f} bytes each"

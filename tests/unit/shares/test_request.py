from typing import Any

import pytest
from msgspec.structs import replace

from gputally.errors import MalformedObject
from gputally.model.kube.pods import Pod
from gputally.model.rules import ResourceRule, Rules
from gputally.shares.request import count, effective_units, holds_gpu
from gputally.shares.schemes import rule_of
from tests.core.manifests import Json, as_pod

GPU = "nvidia.com/gpu"
DEFAULT = Rules()


def container(amount: int | str = 0, *, resource: str = GPU, sidecar: bool = False) -> Json:
    resources = {"requests": {resource: str(amount), "cpu": "1"}, "limits": {resource: str(amount)}} if amount else {}
    return {"name": "c", "resources": resources} | ({"restartPolicy": "Always"} if sidecar else {})


def pod(*containers: Json, init: tuple[Json, ...] = ()) -> Pod:
    spec: dict[str, Any] = {"containers": list(containers), "initContainers": list(init)}
    return as_pod({"metadata": {"uid": "u"}, "spec": spec})


def units(*containers: Json, init: tuple[Json, ...] = ()) -> int:
    return dict(effective_units(pod(*containers, init=init), DEFAULT)).get(GPU, 0)


def test_containers_run_beside_each_other_so_their_requests_add_up() -> None:
    assert units(container(2), container(1), container()) == 3


def test_init_containers_run_before_the_others_so_only_the_largest_counts() -> None:
    assert units(container(2), init=(container(1), container(4))) == 4
    assert units(container(5), init=(container(1), container(4))) == 5


def test_a_sidecar_runs_beside_the_containers() -> None:
    assert units(container(2), init=(container(1, sidecar=True),)) == 3


def test_an_init_container_runs_beside_the_sidecars_before_it_alone() -> None:
    before, after = container(1, sidecar=True), container(3, sidecar=True)

    assert units(container(1), init=(before, container(5), after)) == 6
    assert units(container(3), init=(before, container(5), after)) == 7


def test_a_limit_without_a_request_is_a_request() -> None:
    limited = {"name": "c", "resources": {"limits": {GPU: "2"}}}

    assert units(limited) == 2
    assert holds_gpu(pod(limited), DEFAULT)


def test_resources_of_one_pod_are_counted_apart_in_the_order_of_their_names() -> None:
    both = pod(container(1), container(2, resource="nvidia.com/mig-1g.10gb"))

    assert effective_units(both, DEFAULT) == ((GPU, 1), ("nvidia.com/mig-1g.10gb", 2))


def test_a_pod_that_asks_for_no_gpu_has_no_units() -> None:
    other = pod(container(4, resource="example.com/fpga"))

    assert effective_units(other, DEFAULT) == ()
    assert not holds_gpu(other, DEFAULT)


def test_a_request_of_zero_is_none() -> None:
    assert effective_units(pod({"name": "c", "resources": {"requests": {GPU: "0"}}}), DEFAULT) == ()


@pytest.mark.parametrize("name", ["amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "nvidia.com/gpu.shared"])
def test_the_resources_of_other_makers_and_shared_ones_are_gpus_without_configuration(name: str) -> None:
    assert effective_units(pod(container(1, resource=name)), DEFAULT) == ((name, 1),)


def test_the_first_rule_whose_glob_matches_decides() -> None:
    special, general = ResourceRule(pattern="acme.io/gpu-big", weight=2_000_000), ResourceRule(pattern="acme.io/*")

    rules = Rules(resources=(special, general))

    assert rule_of("acme.io/gpu-big", rules) is special
    assert rule_of("acme.io/gpu", rules) is general
    assert rule_of("other.io/gpu", rules) is None
    assert rule_of("nvidia.com/gpu", replace(rules, built_in_resources=False)) is None


@pytest.mark.parametrize(("text", "amount"), [("8", 8), (8, 8), ("0", 0), ("1k", 1000), ("2Ki", 2048), ("3e2", 300)])
def test_a_quantity_is_a_whole_number_with_or_without_suffix(text: str | int, amount: int) -> None:
    assert count(text) == amount


@pytest.mark.parametrize("text", ["1500m", "-1", "", "one", "0.5"])
def test_a_fraction_of_a_device_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="whole number"):
        count(text)


@pytest.mark.parametrize("amount", ["1000000001", "9223372036854775807", "1E", "16Ei", "9e99", "9" * 400])
def test_whoever_asks_for_more_devices_than_there_can_be_asks_for_a_thousand_million(amount: str) -> None:
    assert units(container(amount)) == 10**9
    assert units(container(amount), container(amount), init=(container(amount, sidecar=True),)) == 10**9


def test_a_node_that_offers_so_many_is_malformed() -> None:
    with pytest.raises(ValueError, match="more devices than a node has"):
        count("1G")


def test_of_thousands_of_resources_in_one_pod_the_first_are_kept() -> None:
    many = {"name": "c", "resources": {"limits": {f"nvidia.com/mig-{i:04}": "1" for i in range(2000)}}}

    assert len(effective_units(pod(many), DEFAULT)) == 64


def test_a_pod_with_a_broken_quantity_is_malformed() -> None:
    with pytest.raises(MalformedObject, match=r"u: '0\.5' is not a whole number"):
        effective_units(pod(container("0.5")), DEFAULT)

import pytest

from gputally.model.rules import MigBasis, ResourceRule, Rules
from gputally.shares.mig import slices_per_gpu
from gputally.shares.request import offered_units
from gputally.shares.schemes import covered, divided, sharing_of

COMPUTE = Rules()
MEMORY = Rules(mig_basis=MigBasis.MEMORY)
A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920"}
SINGLE = {"nvidia.com/mig.strategy": "single", "nvidia.com/gpu.memory": "9728"}


def unit_weight(resource: str, node: dict[str, str], rules: Rules) -> int:
    return covered([(resource, 1)], tuple(node.items()), rules)


def single(product: str) -> dict[str, str]:
    """Under this strategy the labels speak of slices."""
    return SINGLE | {"nvidia.com/gpu.product": product}


def test_a_whole_gpu_weighs_a_million() -> None:
    assert unit_weight("nvidia.com/gpu", {}, COMPUTE) == 1_000_000


@pytest.mark.parametrize("resource", ["nvidia.com/gpu.shared", "nvidia.com/gpu"])
def test_a_replica_weighs_its_part_of_a_gpu_rounded_down(resource: str) -> None:
    """With and without renaming of the shared resource."""
    assert unit_weight(resource, {"nvidia.com/gpu.replicas": "3"}, COMPUTE) == 333_333


@pytest.mark.parametrize("label", ["0", "-1", "many", ""])
def test_a_broken_number_of_replicas_is_one(label: str) -> None:
    assert unit_weight("nvidia.com/gpu", {"nvidia.com/gpu.replicas": label}, COMPUTE) == 1_000_000


@pytest.mark.parametrize(
    ("profile", "by_compute", "by_memory"),
    [
        ("1g.10gb", 142_857, 125_000),
        ("1g.20gb", 142_857, 250_000),
        ("2g.20gb", 285_714, 250_000),
        ("3g.40gb", 428_571, 500_000),
        ("4g.40gb", 571_428, 500_000),
        ("7g.80gb", 1_000_000, 1_000_000),
        ("1c.3g.40gb", 142_857, 166_666),
        ("1g.10gb.me", 142_857, 125_000),
    ],
)
def test_a_mig_slice_weighs_by_compute_or_by_memory(profile: str, by_compute: int, by_memory: int) -> None:
    assert unit_weight(f"nvidia.com/mig-{profile}", A100, COMPUTE) == by_compute
    assert unit_weight(f"nvidia.com/mig-{profile}", A100, MEMORY) == by_memory


def test_an_a30_has_four_slices() -> None:
    a30 = {"nvidia.com/gpu.product": "NVIDIA-A30", "nvidia.com/gpu.memory": "24576"}

    assert unit_weight("nvidia.com/mig-1g.6gb", a30, COMPUTE) == 250_000
    assert unit_weight("nvidia.com/mig-2g.12gb", a30, MEMORY) == 500_000


@pytest.mark.parametrize(
    ("profile", "product", "weight"),
    [
        ("1g.18gb", "NVIDIA-H200", 125_000),
        ("2g.35gb", "NVIDIA-H200", 250_000),
        ("3g.71gb", "NVIDIA-H200", 500_000),
        ("4g.71gb", "NVIDIA-H200", 500_000),
        ("7g.141gb", "NVIDIA-H200", 1_000_000),
        ("1c.3g.71gb", "NVIDIA-H200", 166_666),
        ("1g.6gb", "NVIDIA-A30", 250_000),
        ("2g.12gb", "NVIDIA-A30", 500_000),
        ("4g.24gb", "NVIDIA-A30", 1_000_000),
    ],
)
def test_a_slice_of_a_gpu_of_unknown_memory_weighs_by_the_memory_of_such_profiles(
    profile: str, product: str, weight: int
) -> None:
    assert unit_weight(f"nvidia.com/mig-{profile}", {"nvidia.com/gpu.product": product}, MEMORY) == weight


def test_an_unreadable_profile_weighs_a_whole_gpu() -> None:
    assert unit_weight("nvidia.com/mig-novel", A100, COMPUTE) == 1_000_000


def test_under_the_single_strategy_the_plain_resource_is_a_slice() -> None:
    assert unit_weight("nvidia.com/gpu", single("NVIDIA-A100-SXM4-80GB-MIG-3g.40gb"), COMPUTE) == 428_571


def test_under_the_single_strategy_the_memory_label_is_that_of_a_slice_so_the_product_name_tells_the_gpus() -> None:
    assert unit_weight("nvidia.com/gpu", single("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"), MEMORY) == 125_000
    assert unit_weight("nvidia.com/gpu", single("NVIDIA-H100-80GB-HBM3-MIG-2g.20gb-SHARED"), MEMORY) == 250_000


def test_under_the_single_strategy_a_product_may_name_no_memory() -> None:
    assert unit_weight("nvidia.com/gpu", single("NVIDIA-H200-MIG-1g.18gb"), MEMORY) == 125_000


def test_under_the_mixed_strategy_the_plain_resource_is_a_whole_gpu() -> None:
    mixed = {"nvidia.com/mig.strategy": "mixed", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}

    assert unit_weight("nvidia.com/gpu", mixed, COMPUTE) == 1_000_000
    assert unit_weight("nvidia.com/mig-1g.10gb", mixed, COMPUTE) == 142_857


def test_replicas_are_those_of_the_resource_whose_label_it_is() -> None:
    labels = {
        "nvidia.com/gpu.replicas": "2",
        "nvidia.com/mig-1g.10gb.replicas": "4",
        "nvidia.com/mig-2g.20gb.replicas": "1",
    }
    sharing = labels | {"example.com/gpu.replicas": "9"}

    assert sharing_of(tuple(sharing.items())) == tuple(labels.items())
    assert unit_weight("nvidia.com/gpu", sharing, COMPUTE) == 500_000
    assert unit_weight("nvidia.com/mig-1g.10gb", sharing, COMPUTE) == 35_714
    assert unit_weight("nvidia.com/mig-1g.10gb.shared", sharing, COMPUTE) == 35_714
    assert unit_weight("nvidia.com/mig-2g.20gb", sharing, COMPUTE) == 285_714


def test_a_renamed_replica_without_a_label_of_its_own_is_one_of_a_whole_gpu() -> None:
    """The device plugin may give any name; the labels keep that of the resource it replaces."""
    rules = Rules(resources=(ResourceRule(pattern="nvidia.com/gpu-part", weighing="replica"),))

    assert unit_weight("nvidia.com/gpu-part", {"nvidia.com/gpu.replicas": "4"}, rules) == 250_000


def test_replicas_of_a_slice_share_the_slice() -> None:
    shared = single("NVIDIA-A100-SXM4-80GB-MIG-3g.40gb-SHARED") | {"nvidia.com/gpu.replicas": "2"}

    assert unit_weight("nvidia.com/gpu", shared, COMPUTE) == 214_285
    assert unit_weight("nvidia.com/mig-3g.40gb.shared", {"nvidia.com/mig-3g.40gb.replicas": "2"}, COMPUTE) == 214_285


@pytest.mark.parametrize(
    ("profile", "room"),
    [("1g.10gb", 7), ("1g.20gb", 4), ("2g.20gb", 3), ("3g.40gb", 2), ("7g.80gb", 1), ("1c.3g.40gb", 6), ("novel", 1)],
)
def test_a_gpu_has_room_for_slices_by_compute_and_by_memory(profile: str, room: int) -> None:
    assert slices_per_gpu(profile, A100) == room
    assert slices_per_gpu(profile, single(f"NVIDIA-A100-SXM4-80GB-MIG-{profile}")) == room


def test_a_configured_resource_weighs_what_is_configured() -> None:
    acme = ResourceRule(pattern="acme.io/half", weight=500_000), ResourceRule(pattern="acme.io/*")
    rules = Rules(resources=acme, built_in_resources=False)

    assert unit_weight("acme.io/half", {}, rules) == 500_000
    assert unit_weight("acme.io/gpu", {}, rules) == 1_000_000
    assert unit_weight("nvidia.com/gpu", {}, rules) == 0


def test_capacity_is_what_all_gpu_resources_add_up_to() -> None:
    offered: dict[str, str | int] = {
        "cpu": "64",
        "nvidia.com/mig-3g.40gb": "2",
        "nvidia.com/mig-1g.10gb": 1,
        "nvidia.com/gpu": "4",
    }

    assert covered(offered_units(offered, COMPUTE).items(), (), COMPUTE) == 2 * 428_571 + 142_857 + 4_000_000
    assert offered_units(None, COMPUTE) == {}


@pytest.mark.parametrize(
    ("offered", "parts"),
    [
        ({"nvidia.com/gpu": "8"}, False),
        ({"nvidia.com/gpu": "8", "nvidia.com/mig-1g.10gb": "0"}, False),
        ({"nvidia.com/gpu": "7", "nvidia.com/mig-1g.10gb": "7"}, True),
        ({"nvidia.com/mig-7g.80gb": "1"}, False),
        ({}, False),
    ],
)
def test_a_node_is_divided_when_it_offers_parts_of_gpus(offered: dict[str, str | int], parts: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert divided(offered_units(offered, COMPUTE).items(), (), COMPUTE) is parts

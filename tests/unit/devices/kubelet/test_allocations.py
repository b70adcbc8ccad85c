import pytest

from gputally.devices.kubelet.device_assignments import DeviceAssignment, parse
from gputally.devices.kubelet.parts import Offer, Parts, allocations
from gputally.model.devices import BUSY, Gpu, Part, PartAllocation, Reading


def gpu(uuid: str, minor: int, *parts: Part) -> Reading:
    told = Gpu(uuid=uuid, index=minor, minor=minor, model="H100", pci_bus_id="")
    return Reading(gpu=told, at_us=0, mig=bool(parts), parts=parts or (Part(uuid=uuid, weight=BUSY),))


SLICES = (
    Part(uuid="MIG-a", weight=142_857, gi=7, ci=0, placement=0),
    Part(uuid="MIG-b", weight=428_571, gi=2, ci=0, placement=4),
)
PARTS = Parts([gpu("GPU-0", 0), gpu("GPU-1", 1), gpu("GPU-2", 2, *SLICES)])


def assignment(device: str, pod: str = "train", resource: str = "nvidia.com/gpu") -> DeviceAssignment:
    return DeviceAssignment(namespace="ml", pod=pod, container="main", resource=resource, device=parse(device))


def held(part: str, pod: str = "train", *, replicas: int = 1, in_all: int = 1) -> PartAllocation:
    return PartAllocation(
        part=part,
        namespace="ml",
        pod=pod,
        container="main",
        resource="nvidia.com/gpu",
        replicas=replicas,
        replicas_in_all=in_all,
    )


@pytest.mark.parametrize(
    ("device", "part"),
    [
        ("GPU-1", "GPU-1"),
        ("GPU-1::3", "GPU-1"),
        ("nvidia1", "GPU-1"),
        ("gpu-1", "GPU-1"),
        ("MIG-b", "MIG-b"),
        ("MIG-GPU-2/2/0", "MIG-b"),
        ("nvidia2/gi7", "MIG-a"),
        ("gpu-2-mig-19-4-1", "MIG-b"),
        ("GPU-9", None),
        ("GPU-2", None),
        ("nvidia9", None),
        ("a channel", None),
    ],
)
def test_a_part_is_found_by_every_name_that_device_plugins_give_it(device: str, part: str | None) -> None:
    assert PARTS.find(parse(device)) == part


def test_whole_gpus_are_held_alone_and_unknown_ones_are_counted() -> None:
    found = allocations([assignment("GPU-0"), assignment("GPU-1"), assignment("GPU-9")], {}, PARTS, at_us=5)

    assert found.held == (held("GPU-0"), held("GPU-1"))
    assert (found.at_us, found.unknown) == (5, 1)


def test_replicas_are_counted_of_all_that_there_are() -> None:
    held_now = [assignment("GPU-0::0"), assignment("GPU-0::2"), assignment("GPU-0::1", "eval")]
    found = allocations(held_now, {"GPU-0": 4}, PARTS, at_us=0)

    assert found.held == (held("GPU-0", "eval", in_all=4), held("GPU-0", replicas=2, in_all=4))


def test_where_the_kubelet_does_not_say_the_highest_replica_seen_tells_how_many_there_are() -> None:
    found = allocations([assignment("GPU-0::0"), assignment("GPU-0::2", "eval")], {}, PARTS, at_us=0)

    assert found.held == (held("GPU-0", "eval", in_all=3), held("GPU-0", in_all=3))


REPLICAS = {"nvidia.com/gpu": frozenset(f"GPU-0::{number}" for number in range(4))}


def test_a_part_is_healthy_as_long_as_any_replica_of_it_is_offered() -> None:
    offer = Offer()
    offer.update({**REPLICAS, "nvidia.com/mig-1g.10gb": frozenset({"MIG-a"})}, PARTS, held=())
    offer.update({"nvidia.com/gpu": frozenset({"GPU-0::1", "GPU-9"})}, PARTS, held=())

    assert offer.unhealthy == {"MIG-a"}
    assert offer.replicas == {"GPU-0": 1}


def test_a_device_plugin_that_is_away_makes_no_share_of_a_holder_larger() -> None:
    offer = Offer()
    offer.update(REPLICAS, PARTS, held=())
    offer.update({}, PARTS, held={"GPU-0"})
    away = offer.replicas
    offer.update({"nvidia.com/gpu": frozenset({"GPU-0::1"})}, PARTS, held={"GPU-0"})

    assert away == offer.replicas == {"GPU-0": 4}


def test_parts_that_are_no_more_are_forgotten() -> None:
    offer = Offer()
    offer.update({**REPLICAS, "nvidia.com/mig-1g.10gb": frozenset({"MIG-a::0"})}, PARTS, held={"MIG-a"})
    offer.update(REPLICAS, Parts([gpu("GPU-0", 0)]), held=())

    assert (offer.unhealthy, offer.replicas) == (frozenset(), {"GPU-0": 4})

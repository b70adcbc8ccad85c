import msgspec
import pytest

from gputally.errors import MalformedObject
from gputally.model.kube.nodes import Node
from gputally.model.needs import Place, Taint
from gputally.placement.node_room import place_of


def node(name: str = "n1", *, gpus: str = "8") -> Node:
    given = {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"pool": "a", "model": "H100"}},
        "spec": {"unschedulable": True, "taints": [{"key": "t", "value": "v", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"nvidia.com/gpu": gpus, "cpu": "95500m", "memory": "1Gi"},
            "capacity": {"cpu": "96"},
        },
    }
    return msgspec.convert(given, Node)


def test_a_place_has_what_the_scheduler_reads_of_a_node() -> None:
    assert place_of(node()) == Place(
        uid="uid-n1",
        name="n1",
        labels=(("model", "H100"), ("pool", "a")),
        taints=(Taint("t", "v", "NoSchedule"),),
        offered=(("cpu", 95_500), ("memory", 2**30), ("nvidia.com/gpu", 8)),
        is_cordoned=True,
    )


def test_equal_labels_and_offers_of_nodes_are_one_object() -> None:
    first, second = place_of(node("n1")), place_of(node("n2"))

    assert first.offered is second.offered
    assert all(one is other for one, other in zip(first.labels, second.labels, strict=True))


def test_a_broken_quantity_is_an_error_that_names_the_node() -> None:
    with pytest.raises(MalformedObject, match="uid-n1"):
        place_of(node(gpus="several"))

import pytest

from gputally.model.placement.needs import Place, Taint
from gputally.model.placement.pod_sizes import Capacity, Stranded
from gputally.model.rules import Rules
from gputally.placement.fits_now import capacity_of, fits_now
from tests.unit.placement.cluster import GPU, place, room, taken


def test_an_empty_node_fits_one_large_or_several_small_pods() -> None:
    nodes = room()

    assert capacity_of(nodes.nodes["n1"], gpu=GPU) == Capacity(fits=(8, 4, 2, 1), free=8)


def test_free_gpus_that_are_too_few_for_the_largest_pod_are_fragments() -> None:
    nodes = room(place(), a=("n1", taken(gpu=3)))

    assert capacity_of(nodes.nodes["n1"], gpu=GPU) == Capacity(
        fits=(5, 2, 1, 0), free=5, stranded=((Stranded.FRAGMENT, 5),)
    )


def test_the_largest_size_is_that_of_the_node() -> None:
    assert capacity_of(room(place(gpu=4)).nodes["n1"], gpu=GPU) == Capacity(fits=(4, 2, 1, 0), free=4)


def test_gpus_beside_too_little_cpu_are_stranded() -> None:
    nodes = room(place(cpu=4), web=("n1", taken(gpu=0, cpu=1)))

    assert capacity_of(nodes.nodes["n1"], gpu=GPU) == Capacity(
        fits=(3, 1, 0, 0), free=8, stranded=((Stranded.CPU, 5), (Stranded.FRAGMENT, 3))
    )


def test_gpus_on_a_node_without_room_for_pods_or_with_a_cordon_are_stranded() -> None:
    assert capacity_of(room(place(pods=0)).nodes["n1"], gpu=GPU).stranded == ((Stranded.PODS, 8),)
    assert capacity_of(room(place(is_cordoned=True)).nodes["n1"], gpu=GPU) == Capacity(
        free=8, stranded=((Stranded.CORDON, 8),)
    )


@pytest.mark.parametrize(
    ("key", "effect", "is_out"),
    [
        ("node.kubernetes.io/not-ready", "NoSchedule", True),
        ("node.kubernetes.io/unreachable", "NoExecute", True),
        ("node.kubernetes.io/memory-pressure", "NoSchedule", True),
        ("ToBeDeletedByClusterAutoscaler", "NoSchedule", True),
        ("karpenter.sh/disrupted", "NoSchedule", True),
        ("node.kubernetes.io/busy", "PreferNoSchedule", False),
        ("nvidia.com/gpu", "NoSchedule", False),
    ],
)
def test_gpus_on_a_node_that_is_not_ready_or_that_goes_are_stranded(key: str, effect: str, *, is_out: bool) -> None:
    found = capacity_of(room(place(taints=(Taint(key, "", effect),))).nodes["n1"], gpu=GPU)

    out = Capacity(free=8, stranded=((Stranded.NOT_READY, 8),))
    assert found == (out if is_out else Capacity(fits=(8, 4, 2, 1), free=8))


def test_an_overcommitted_node_fits_nothing_and_has_nothing_free() -> None:
    nodes = room(place(gpu=1), a=("n1", taken(gpu=3)))

    assert capacity_of(nodes.nodes["n1"], gpu=GPU) == Capacity(fits=(0, 0, 0, 0), free=0)


def test_nodes_add_up_by_their_labels_and_follow_changes() -> None:
    nodes = room(place("n1"), place("n2"), place("n3", labels=(("pool", "b"),)), a=("n1", taken(gpu=8)))

    def pool(each: Place) -> tuple[str, ...]:
        return (dict(each.labels).get("pool", ""),)

    assert fits_now(nodes, pool, Rules()) == {
        ("",): Capacity(fits=(8, 4, 2, 1), free=8),
        ("b",): Capacity(fits=(8, 4, 2, 1), free=8),
    }
    nodes.release("n1", "a")
    assert fits_now(nodes, pool, Rules())["",] == Capacity(fits=(16, 8, 4, 2), free=16)


def test_a_node_without_a_known_gpu_resource_has_nothing_that_fits() -> None:
    unknown = place(gpu=0)

    assert fits_now(room(unknown), lambda _: (), Rules()) == {}

import pytest

from gputally.model.needs import Place, Taint
from gputally.model.pod_sizes import Capacity, Stranded
from gputally.model.rules import Rules
from gputally.placement.fits_now import Size, capacity_of, fits_now, most_used
from tests.unit.placement.cluster import GPU, place, room, taken


def test_an_empty_node_fits_one_large_or_several_small_pods() -> None:
    nodes = room()

    assert capacity_of(nodes.nodes["n1"], gpu=GPU) == Capacity(fits=(8, 4, 2, 1), free=8)


@pytest.mark.parametrize(
    ("sizes", "fragment"), [((8,), 5), ((1, 8), 0), ((2, 8), 1), ((2, 3), 0), ((3,), 2), ((9,), 5), ((), 0)]
)
def test_free_gpus_are_fragments_that_no_pods_of_known_sizes_could_have(sizes: tuple[int, ...], fragment: int) -> None:
    nodes = room(place(), a=("n1", taken(gpu=3)))

    stranded = ((Stranded.FRAGMENT, fragment),) if fragment else ()
    assert capacity_of(nodes.nodes["n1"], gpu=GPU, sizes=sizes) == Capacity(
        fits=(5, 2, 1, 0), free=5, stranded=stranded
    )


def test_shares_of_gpus_in_any_number_are_counted_at_once() -> None:
    assert most_used(10**9, (7, 3)) == 10**9 - 1


def test_pods_of_another_model_or_resource_use_no_gpu_and_those_of_any_model_do() -> None:
    nodes = room(place(), a=("n1", taken(gpu=7)))

    def fragment(size: Size) -> int:
        return dict(fits_now(nodes, lambda _: (), Rules(), sizes=[size, ("", GPU, 2)])[()].stranded).get(
            Stranded.FRAGMENT, 0
        )

    assert fragment(("A100", GPU, 1)) == fragment(("", "nvidia.com/mig-1g.10gb", 1)) == 1
    assert fragment(("", GPU, 1)) == 0


def test_gpus_beside_too_little_cpu_are_stranded() -> None:
    nodes = room(place(cpu=4), web=("n1", taken(gpu=0, cpu=1)))

    assert capacity_of(nodes.nodes["n1"], gpu=GPU, sizes=(4,)) == Capacity(
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

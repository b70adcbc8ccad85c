import pytest

from gputally.accounting.nodes.capacity import CapacityTerms, divide, facts_at, slices_of
from gputally.model.node_record import CapacityState, NodeFacts, NodeRecord
from gputally.model.price import Asset

GPU = 1_000_000
ASSET = Asset(gpu_model="A100", pool="train")


def facts(
    *,
    physical: int = 8,
    covered: int | None = None,
    allocatable: int | None = None,
    ready: bool = True,
    cordoned: bool = False,
    divided: bool = False,
) -> NodeFacts:
    offered = physical if covered is None else covered
    return NodeFacts(
        physical=physical * GPU,
        covered=offered * GPU,
        allocatable=(offered if allocatable is None else allocatable) * GPU,
        ready=ready,
        cordoned=cordoned,
        divided=divided,
        gpu_model="A100",
        pool="train",
        asset=ASSET,
    )


def states(known: NodeFacts, allocated: int) -> dict[str, int]:
    return {state.value: quantity // GPU for state, quantity in divide(known, allocated * GPU) if quantity}


def test_what_is_not_allocated_is_free() -> None:
    assert states(facts(), 3) == {"allocated": 3, "free": 5}


def test_the_rest_of_a_lost_node_is_unknown_before_anything_else() -> None:
    assert states(facts(ready=False, cordoned=True, allocatable=4), 3) == {"allocated": 3, "unknown": 5}


def test_the_rest_of_a_cordoned_node_is_cordoned_before_it_is_unhealthy() -> None:
    assert states(facts(cordoned=True, allocatable=4), 3) == {"allocated": 3, "cordoned": 5}


def test_what_is_not_allocatable_is_unhealthy() -> None:
    assert states(facts(allocatable=6), 3) == {"allocated": 3, "unhealthy": 2, "free": 3}


def test_a_pod_on_a_broken_gpu_has_it() -> None:
    assert states(facts(allocatable=6), 7) == {"allocated": 7, "unhealthy": 1}


def test_a_whole_gpu_that_is_not_offered_is_unhealthy() -> None:
    assert states(facts(covered=7), 3) == {"allocated": 3, "unhealthy": 1, "free": 4}


def test_what_the_layout_of_parts_leaves_over_is_unsliced_after_what_is_unhealthy() -> None:
    assert states(facts(covered=7, divided=True), 3) == {"allocated": 3, "unsliced": 1, "free": 4}
    assert states(facts(covered=6, allocatable=5, divided=True), 6) == {"allocated": 6, "unhealthy": 1, "unsliced": 1}


def test_a_node_that_offers_nothing_has_lost_its_device_plugin() -> None:
    assert states(facts(covered=0), 3) == {"allocated": 3, "unhealthy": 5}


def test_allocations_above_the_capacity_are_overcommitted() -> None:
    assert states(facts(physical=8), 10) == {"allocated": 10, "overcommitted": 2}
    assert states(facts(physical=0), 2) == {"allocated": 2, "overcommitted": 2}


@pytest.mark.parametrize("allocated", range(12))
@pytest.mark.parametrize("known", [facts(), facts(ready=False), facts(covered=5, allocatable=3), facts(covered=0)])
def test_capacity_and_overcommitted_are_allocated_and_the_others(known: NodeFacts, allocated: int) -> None:
    divided = dict(divide(known, allocated * GPU))
    overcommitted = divided.pop(CapacityState.OVERCOMMITTED, 0)

    assert known.physical + overcommitted == sum(divided.values())


def record(*history: tuple[int, NodeFacts], gone: int | None = None) -> NodeRecord:
    return NodeRecord(uid="u", name="n", created_us=history[0][0], gone_us=gone, facts=history)


DeviceAssignment = tuple[int, int | None, int]


def pieces(
    node: NodeRecord, *assignments: DeviceAssignment, since: int = 0, price_changes: tuple[int, ...] = ()
) -> list[tuple[str, int, int, int | None]]:
    """The slices taken apart by state; the holdings are (start, end, µGPU)."""
    since = max(since, node.facts[0][0])
    steps: dict[int, int] = {}
    for start, end, quantity in assignments:
        steps[start] = steps.get(start, 0) + quantity
        if end is not None:
            steps[end] = steps.get(end, 0) - quantity
    found = slices_of(
        node,
        steps,
        since_us=since,
        allocated=sum(quantity for at, quantity in steps.items() if at < since),
        terms=CapacityTerms(lambda _, __: None, price_changes, lambda known: (known.gpu_model, known.pool)),
    )
    assert all(each.labels == ("A100", "train") for each in found)
    return sorted(
        (state, quantity // GPU, each.start_us, each.end_us) for each in found for state, quantity in each.parts
    )


def test_a_pod_takes_from_what_is_free_while_it_has_it() -> None:
    assert pieces(record((0, facts())), (10, 20, 3 * GPU)) == [
        ("allocated", 3, 10, 20),
        ("free", 5, 10, 20),
        ("free", 8, 0, 10),
        ("free", 8, 20, None),
    ]


def test_neighbours_that_differ_in_nothing_are_one_slice() -> None:
    assert pieces(record((0, facts())), (10, 20, GPU), (20, None, GPU), price_changes=(5, 15)) == [
        ("allocated", 1, 10, None),
        ("free", 7, 10, None),
        ("free", 8, 0, 10),
    ]


def test_capacity_ends_with_the_node_and_what_outlasts_it_is_overcommitted() -> None:
    assert pieces(record((0, facts()), gone=30), (10, 35, 8 * GPU)) == [
        ("allocated", 8, 10, 30),
        ("allocated", 8, 30, 35),
        ("free", 8, 0, 10),
        ("overcommitted", 8, 30, 35),
    ]


def test_slices_begin_where_the_account_does_with_what_was_allocated_before() -> None:
    assert pieces(record((0, facts())), (10, None, 2 * GPU), since=50) == [
        ("allocated", 2, 50, None),
        ("free", 6, 50, None),
    ]


def test_a_node_that_was_gone_before_the_account_began_has_no_capacity() -> None:
    assert pieces(record((0, facts()), gone=30), since=50) == []


def test_slices_follow_the_history_of_facts() -> None:
    assert pieces(record((5, facts()), (10, facts(cordoned=True)), (20, facts(ready=False)))) == [
        ("cordoned", 8, 10, 20),
        ("free", 8, 5, 10),
        ("unknown", 8, 20, None),
    ]


def test_facts_hold_from_their_instant_until_the_next_and_the_first_ones_before() -> None:
    node = record((5, facts()), (10, facts(cordoned=True)))

    assert [facts_at(node, instant).cordoned for instant in (0, 5, 9, 10, 99)] == [False, False, False, True, True]

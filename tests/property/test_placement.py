"""Verdicts against a naive scheduler: their obstacles suffice, and none is superfluous."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from gputally.model.advice import ChangeKind
from gputally.model.needs import Needs, Place, Situation, Taken
from gputally.model.verdicts import Obstacle, ObstacleKind, Reason
from gputally.placement.eviction import would_evict
from gputally.placement.fits_now import most_used
from gputally.placement.room import Room
from gputally.placement.suggestions import suggestions
from gputally.placement.verdicts import NOWHERE, judged
from gputally.placement.what_if import what_if
from tests.naive_scheduler import NaiveCluster, changed, naive
from tests.property.examples import examples
from tests.property.rooms import GPU, NEEDS, PRIORITIES, SITUATIONS, TAKEN, places, rooms

ON_NODES = (
    ObstacleKind.TAINT,
    ObstacleKind.CORDON,
    ObstacleKind.SELECTOR,
    ObstacleKind.SIZE,
    ObstacleKind.RESOURCE,
    ObstacleKind.POLICY,
)
BINDS = (Reason.SCHEDULABLE, Reason.PREEMPTING)


@given(NEEDS, rooms(), SITUATIONS)
@examples(500)
def test_without_its_obstacles_a_pod_is_bound_and_with_any_one_of_them_it_is_not(
    needs: Needs, room: Room, situation: Situation
) -> None:
    verdict = judged(needs, room, situation)
    cluster = blocked(naive(needs, room), verdict.obstacles)

    is_stopping = judged(changed(needs, gates=()), room).reason is Reason.VICTIMS_STOPPING
    is_bound = binds_at_once if is_stopping else NaiveCluster.binds
    assert (verdict.reason in BINDS) == (not verdict.obstacles)
    assert is_bound(cluster.without(verdict.obstacles))
    for obstacle in verdict.obstacles:
        others = [each for each in verdict.obstacles if each != obstacle]
        assert not is_bound(cluster.without(others)), obstacle


@given(NEEDS, rooms())
@examples(300)
def test_what_if_agrees_with_the_naive_scheduler_and_with_the_verdict(needs: Needs, room: Room) -> None:
    needs = changed(needs, gates=())
    found, verdict, cluster = what_if(needs, room), judged(needs, room), naive(needs, room)

    assert set(found.nodes) == cluster.fits_now()
    assert (found.fitting == 1) == (verdict.reason is Reason.SCHEDULABLE)
    assert bool(found.evictions) or verdict.reason is not Reason.PREEMPTING
    assert found.verdict is None if found.nodes or found.evictions else found.verdict == verdict
    for eviction in found.evictions:
        assert (eviction.node, eviction.victims) == (verdict.node, verdict.victims)


@given(NEEDS, rooms())
@examples(300)
def test_victims_have_a_lower_priority_and_none_could_stay(needs: Needs, room: Room) -> None:
    eviction = would_evict(needs, room)

    if eviction is None:
        assert not needs.may_preempt or not naive(changed(needs, gates=()), room).binds()
        return
    for kept in (None, *eviction.victims):
        rest = room.copy()
        for uid in eviction.victims:
            assert room.nodes[eviction.node].taken[uid].priority < needs.priority
            if uid != kept:
                rest.release(eviction.node, uid)
        assert (eviction.node in naive(needs, rest).fits_now()) == (kept is None or not eviction.victims)


@given(rooms(), PRIORITIES)
@examples(200)
def test_the_amount_of_each_resource_is_that_of_all_that_is_available(room: Room, priority: int) -> None:
    for node, may_preempt in product(room, (False, True)):
        available = node.available(priority, may_preempt=may_preempt)
        for resource in (GPU, "cpu", "pods", "memory"):
            assert node.amount(resource, priority, may_preempt=may_preempt) == available.get(resource, 0)


@given(st.data(), NEEDS)
@examples(200)
def test_a_room_after_changes_is_like_one_from_scratch(data: st.DataObject, needs: Needs) -> None:
    room, waiting = data.draw(rooms()), [needs, *data.draw(st.lists(NEEDS, max_size=3))]
    for each in waiting:
        judged(each, room)
    for _ in range(data.draw(st.integers(1, 4))):
        change(room, data)
        for each in waiting:
            assert judged(each, room) == judged(each, fresh(room))


def change(room: Room, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["n0", "n1", "n9"]))
    uid = f"{name}-{data.draw(st.integers(0, 3))}"
    match data.draw(st.integers(0, 6)):
        case 0:
            place: Place = data.draw(places(name))
            room.put_node(place)
        case 1:
            room.drop_node(name)
        case 2:
            room.bind(name, uid, data.draw(TAKEN))
        case 3:
            room.release(name, uid)
        case 4:
            room.stop(name, uid)
        case 5:
            room.nominate(name, "new", data.draw(TAKEN))
        case 6:
            room.withdraw(name, "new")


def fresh(room: Room) -> Room:
    """The same facts, told to a new room."""
    found = Room()
    for name, node in room.nodes.items():
        if node.place:
            found.put_node(node.place)
        for uid, taken in node.taken.items():
            found.bind(name, uid, taken)
        for uid in node.stopping:
            found.stop(name, uid)
        for uid, taken in node.nominated.items():
            found.nominate(name, uid, taken)
    return found


def binds_at_once(cluster: NaiveCluster) -> bool:
    """Without a preemption: that has been decided."""
    return not cluster.blocks and bool(cluster.has_another or cluster.fits_now())


def blocked(cluster: NaiveCluster, obstacles: tuple[Obstacle, ...]) -> NaiveCluster:
    """The cluster, in which obstacles that concern no node keep the pod from all."""
    general = {each for each in obstacles if each.kind not in ON_NODES}
    return NaiveCluster(cluster.needs, cluster.nodes, frozenset(general))


@given(st.integers(0, 40), st.sets(st.integers(1, 12), min_size=1, max_size=4))
@examples(300)
def test_the_most_that_pods_of_some_sizes_could_have_is_that_of_all_ways_to_place_them(
    free: int, sizes: set[int]
) -> None:
    had = {0}
    for used in range(1, free + 1):
        if any(used - size in had for size in sizes):
            had.add(used)

    assert most_used(free, sizes) == max(had)


@given(NEEDS, rooms(), st.integers(2, 4))
@examples(300)
def test_a_change_helps_as_many_pods_as_the_naive_scheduler_then_binds(needs: Needs, room: Room, count: int) -> None:
    needs = changed(needs, gates=(), may_preempt=False)
    verdict = judged(needs, room)
    for each in suggestions(verdict, needs, room, NOWHERE, count=count):
        [change, *others] = each.changes
        if change.kind is not ChangeKind.WAIT or others:
            continue
        rest = room.copy()
        for uid in change.pods:
            rest.release(change.node, uid)
            rest.withdraw(change.node, uid)
        bound = 0
        while bound < count and (fits := naive(needs, rest).fits_now()):
            rest.bind(min(fits), f"another-{bound}", Taken(needs.amounts, needs.priority))
            bound += 1
        assert each.bound == bound

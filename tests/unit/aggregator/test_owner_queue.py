"""Owners are looked up by turns of their namespaces."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from gputally.aggregator.owner_lookup import MAX_LOOKUPS, MAX_PER_NAMESPACE, OwnerQueue
from gputally.model.kube.meta import Owner, OwnerReference


def owner(name: str, namespace: str = "ml") -> Owner:
    return Owner(namespace, OwnerReference(kind="Job", name=name, uid=name, api_version="batch/v1", controller=True))


def filled(**namespaces: int) -> OwnerQueue:
    """A queue with so many owners of each namespace, those of the first put in before those of the second."""
    queue = OwnerQueue()
    for namespace, number in namespaces.items():
        for name in range(number):
            queue.put(owner(str(name), namespace))
    return queue


def taken(queue: OwnerQueue, now_s: float = 0.0) -> list[str]:
    """The namespaces of all that may be looked up at once now."""
    return [found.namespace for found in iter(partial(queue.take, now_s), None)]


def test_namespaces_take_turns_however_many_owners_one_has() -> None:
    assert taken(filled(hostile=10_000, ml=2, web=1)) == ["hostile", "ml", "web", "hostile", "ml", "hostile", "hostile"]


def test_one_namespace_leaves_places_for_others() -> None:
    queue = filled(hostile=10_000)
    assert taken(queue) == ["hostile"] * MAX_PER_NAMESPACE

    queue.put(owner("late"))
    assert taken(queue) == ["ml"]


def test_no_more_are_looked_up_at_once_than_there_are_places() -> None:
    queue = filled(a=10, b=10, c=10)
    assert len(taken(queue)) == MAX_LOOKUPS

    queue.done(owner("0", "a"))
    assert taken(queue) == ["c"]


def test_the_next_owner_of_another_namespace_waits_for_one_place_and_not_for_ten_thousand_owners() -> None:
    queue = filled(hostile=10_000, worse=10_000)
    first = [queue.take(0) for _ in range(MAX_LOOKUPS)]
    queue.put(owner("late"))
    lookups = 0
    while first[lookups] and (done := first[lookups]):
        queue.done(done)
        lookups += 1
        if (found := queue.take(0)) and found.namespace == "ml":
            break
        first.append(found)

    assert lookups <= 3


def test_an_owner_is_in_the_queue_once() -> None:
    queue = filled(ml=1)
    queue.put(owner("0"))
    assert taken(queue) == ["ml"]
    queue.put(owner("0"))
    assert taken(queue) == []

    queue.done(owner("0"))
    queue.put(owner("0"))
    assert taken(queue) == ["ml"]


def test_one_that_is_put_off_comes_back_when_it_is_due() -> None:
    queue = filled(ml=2)
    assert taken(queue) == ["ml", "ml"]
    queue.done(owner("0"), again_s=30)
    queue.done(owner("1"), again_s=20)

    assert queue.due_s == 20
    assert queue.take(19.9) is None
    assert queue.take(20) == owner("1")
    assert queue.due_s == 30
    assert queue.take(31) == owner("0")
    assert queue.due_s is None


def test_what_nobody_wants_any_more_is_dropped() -> None:
    queue = filled(ml=3, web=1)
    queue.take(0)
    queue.take(0)
    queue.done(owner("0"), again_s=9)
    queue.done(owner("0", "web"), again_s=8)

    queue.keep({owner("0"), owner("2")})

    assert len(queue) == 2
    assert queue.due_s == 9
    assert queue.take(0) == owner("2")
    assert queue.take(10) == owner("0")


@given(steps=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(0, 3)), max_size=60))
def test_nothing_is_lost_and_no_limit_is_passed(steps: list[tuple[str, int, int]]) -> None:
    queue, members = OwnerQueue(), set[Owner]()
    busy: list[Owner] = []
    for now_s, (namespace, name, action) in enumerate(steps):
        match action:
            case 0 | 1:
                queue.put(owner(str(name), namespace))
                members.add(owner(str(name), namespace))
            case 2 if found := queue.take(now_s):
                busy.append(found)
            case 3 if busy:
                done = busy.pop(0)
                again_s = now_s + name if name else None
                queue.done(done, again_s=again_s)
                members -= set() if again_s else {done}
        assert len(queue) == len(members)
        assert len(set(busy)) == len(busy) <= MAX_LOOKUPS
        assert all(sum(each.namespace == place for each in busy) <= MAX_PER_NAMESPACE for place in "abc")
    for each in busy:
        queue.done(each)
    rest = []
    while found := queue.take(1000):
        rest.append(found)
        queue.done(found)
    assert set(rest) == members - set(busy)

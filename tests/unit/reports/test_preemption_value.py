"""What a preemption bought: its victim's GPUs go to the preemptor, to others, or to nobody."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gputally.ledger.preemption_records import NodeBinding
from gputally.model.units import GPU, GPU_SECOND, US_PER_SECOND
from gputally.reports.preemption_value import Given, PreemptionValue, values_of

UNTIL = 1000


def victim(uid: str, gpus: int, *, released: int = 100, by: str | None = "p") -> Given:
    return Given(
        victim_uid=uid, takers=frozenset({by}) if by else None, released_us=released * US_PER_SECOND, free=gpus * GPU
    )


def bound(uid: str, gpus: int, start: int, end: int = UNTIL) -> NodeBinding:
    times = {"start_us": start * US_PER_SECOND, "end_us": end * US_PER_SECOND}
    return NodeBinding(node_uid="n", pod_uid=uid, quantity=gpus * GPU, **times)


def values(victims: Sequence[Given], *pods: NodeBinding) -> dict[str, tuple[float | None, float | None, float]]:
    """GPUs taken, and GPU-seconds bought and stranded."""
    found = values_of([replace(each) for each in victims], pods, until_us=UNTIL * US_PER_SECOND)
    return {
        uid: (
            None if each.taken is None else each.taken / GPU,
            None if each.bought is None else each.bought / GPU_SECOND,
            each.stranded / GPU_SECOND,
        )
        for uid, each in found.items()
    }


def test_the_preemptor_has_the_gpus_from_its_binding_to_its_end() -> None:
    assert values([victim("a", 4)], bound("p", 4, 103, 203)) == {"a": (4, 400, 12)}


def test_it_gains_no_more_than_its_victims_gave() -> None:
    found = values([victim("a", 2), victim("b", 1)], bound("p", 8, 100, 200))

    assert found == {"a": (2, 200, 0), "b": (1, 100, 0)}


def test_what_it_does_not_need_is_stranded_until_another_pod_is_bound() -> None:
    found = values([victim("a", 8)], bound("p", 1, 100, 200), bound("other", 5, 150))

    assert found == {"a": (1, 100, 5 * 50 + 2 * 900)}


def test_a_preemptor_without_gpus_or_on_another_node_gains_nothing() -> None:
    assert values([victim("a", 2)], bound("p", 0, 110)) == {"a": (0, 0, 2 * 900)}
    assert values([victim("a", 2)]) == {"a": (0, 0, 2 * 900)}


def test_it_is_not_known_what_an_unknown_preemptor_gained() -> None:
    assert values([victim("a", 2, by=None)], bound("x", 2, 110)) == {"a": (None, None, 2 * 10)}


def test_a_preemptor_takes_the_gpus_of_its_own_victims_first() -> None:
    victims = [victim("a", 2, by="x"), victim("b", 2, released=110)]

    assert values(victims, bound("p", 2, 120, 220)) == {"a": (0, 0, 2 * 900), "b": (2, 200, 2 * 10)}


def test_a_binding_in_the_second_of_the_release_counts() -> None:
    late = replace(victim("a", 1), released_us=100 * US_PER_SECOND + 900_000)

    assert values([late], bound("before", 1, 99), bound("p", 1, 100, 200)) == {"a": (1, 100, 0)}


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Given], list[NodeBinding]]:
    uids = st.sampled_from(["p", "q", None])
    victims = [
        victim(f"v{i}", draw(st.integers(0, 4)), released=draw(st.integers(10, 500)), by=draw(uids))
        for i in range(draw(st.integers(1, 5)))
    ]
    names = draw(st.lists(st.sampled_from(["p", "q", "r", "s"]), unique=True))
    pods = [
        bound(name, draw(st.integers(0, 6)), start, start + 100)
        for name in names
        for start in [draw(st.integers(0, 600))]
    ]
    return victims, pods


def outcome(found: dict[str, PreemptionValue], uids: Sequence[str]) -> int:
    return sum(found[uid].taken or 0 for uid in uids)


@given(histories())
def test_no_gpu_is_taken_twice_nor_stranded_longer_than_it_was_free(
    history: tuple[list[Given], list[NodeBinding]],
) -> None:
    victims, pods = history
    given_ = {each.victim_uid: replace(each) for each in victims}
    found = values_of([replace(each) for each in victims], pods, until_us=UNTIL * US_PER_SECOND)

    assert found.keys() == given_.keys()
    for uid, value in found.items():
        assert 0 <= (value.taken or 0) <= given_[uid].free
        assert 0 <= value.stranded <= given_[uid].free * (UNTIL * US_PER_SECOND - given_[uid].released_us)
        assert (value.bought is None) is (given_[uid].takers is None)
    for pod in pods:
        own = [uid for uid, each in given_.items() if each.is_for(pod)]
        assert outcome(found, own) <= pod.quantity
        assert sum(found[uid].bought or 0 for uid in own) == outcome(found, own) * (pod.end_us - pod.start_us)

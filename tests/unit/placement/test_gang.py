import pytest

from gputally.model.kube.pods import Toleration
from gputally.model.needs import GangState, Needs, Situation
from gputally.model.verdicts import Obstacle, ObstacleKind, Reason
from gputally.placement import gangs
from gputally.placement.node_room import NodeRoom
from gputally.placement.room import Room
from gputally.placement.verdicts import judged
from tests.unit.placement.cluster import needs, place, room


def test_a_gang_whose_members_do_not_fit_at_once_waits_though_each_of_them_would_fit() -> None:
    gang = GangState(name="g", least=4, members=4, bound=1)

    verdict = judged(needs(gpu=3), room(), Situation(gang=gang))

    assert verdict.reason is Reason.GANG
    assert verdict.obstacles == (Obstacle(kind=ObstacleKind.GANG, what="g", needed=3, free=2),)
    assert judged(needs(gpu=2), room(), Situation(gang=gang)).reason is Reason.SCHEDULABLE
    assert judged(needs(gpu=16), room(), Situation(gang=gang)).reason is Reason.IMPOSSIBLE


def test_a_gang_may_have_too_few_members_of_which_too_few_would_fit() -> None:
    verdict = judged(needs(gpu=3), room(), Situation(gang=GangState(name="g", least=4, members=3)))

    assert [(each.what, each.needed, each.free) for each in verdict.obstacles] == [
        ("g: members", 4, 3),
        ("g", 4, 2),
    ]


def test_members_of_a_gang_with_different_needs_are_placed_beside_each_other() -> None:
    large, small = needs(gpu=6), needs(gpu=2)

    def reason(nodes: Room, *waiting: tuple[Needs, int]) -> Reason:
        count = sum(number for _, number in waiting)
        gang = GangState(name="g", least=count, members=count, waiting=waiting)
        return judged(small, nodes, Situation(gang=gang)).reason

    assert reason(room(), (small, 1), (large, 1)) is Reason.SCHEDULABLE
    assert reason(room(), (small, 2), (large, 1)) is Reason.GANG
    assert reason(room(place("n1"), place("n2", gpu=2)), (small, 2), (large, 1)) is Reason.SCHEDULABLE


def test_the_largest_members_of_a_gang_are_placed_first_on_the_fullest_node_that_suffices() -> None:
    waiting = ((needs(gpu=3), 2), (needs(gpu=4), 1))
    gang = GangState(name="g", least=3, members=3, waiting=waiting)

    verdict = judged(needs(gpu=3), room(place("n1", gpu=6), place("n2", gpu=4)), Situation(gang=gang))

    assert verdict.reason is Reason.SCHEDULABLE


def test_of_a_gang_with_many_kinds_of_members_a_bounded_number_of_nodes_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = list[str]()

    def available_on(node: NodeRoom, needs: Needs) -> dict[str, int]:
        looked.append(node.name)
        return dict(node.available(needs.priority, may_preempt=needs.may_preempt))

    monkeypatch.setattr(gangs, "available_on", available_on)
    nodes = room(*(place(f"n{number}") for number in range(300)))
    kinds = [needs(gpu=8, tolerations=(Toleration(key=f"k{number}", operator="Exists"),)) for number in range(16)]
    gang = GangState(name="g", least=800, members=800, waiting=tuple((each, 50) for each in kinds))

    verdict = judged(kinds[0], nodes, Situation(gang=gang))

    assert 0 < len(looked) <= gangs.MOST_NODES
    assert verdict.reason is Reason.SCHEDULABLE


def test_a_gang_of_equal_members_is_not_said_to_fit_or_not_beyond_the_nodes_that_are_looked_at() -> None:
    def verdict(least: int, *, nodes: int) -> Reason:
        gang = GangState(name="g", least=least, members=least)
        return judged(
            needs(gpu=8), room(*(place(f"n{number}") for number in range(nodes))), Situation(gang=gang)
        ).reason

    few, many = gangs.MOST_NODES - 1, gangs.MOST_NODES + 1
    assert verdict(few, nodes=few) is Reason.SCHEDULABLE
    assert verdict(few + 1, nodes=few) is Reason.GANG
    assert verdict(100_000, nodes=many) is Reason.SCHEDULABLE


@pytest.mark.parametrize(
    "gang",
    [
        GangState(name="g", least=9, members=9, is_mixed=True),
        GangState(name="g", least=9, members=9, waiting=tuple((needs(gpu=8, priority=each), 1) for each in range(9))),
    ],
)
def test_of_a_gang_that_is_too_mixed_a_pod_has_the_verdict_of_its_own_unless_members_are_missing(
    gang: GangState,
) -> None:
    incomplete = GangState(name="g", least=10, members=9, waiting=gang.waiting, is_mixed=gang.is_mixed)

    assert judged(needs(gpu=8), room(), Situation(gang=gang)).reason is Reason.SCHEDULABLE
    verdict = judged(needs(gpu=8), room(), Situation(gang=incomplete))
    assert [each.what for each in verdict.obstacles] == ["g: members"]

from gputally.model.placement.needs import Needs
from gputally.model.placement.situation import GangState, Situation
from gputally.model.placement.verdict import Obstacle, ObstacleKind, Reason
from gputally.placement.judge import judged
from gputally.placement.room import Room
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

import pytest

from gputally.model.kube.pods import Toleration
from gputally.model.needs import SHARES, TOO_MANY, GangState, Needs, Place, QuotaState, Situation, Taint
from gputally.model.verdicts import Obstacle, ObstacleKind, Reason
from gputally.placement.room import Room
from gputally.placement.verdicts import judged
from tests.unit.placement.cluster import GPU, needs, place, room, taken

FULL = room(place(gpu=2), a=("n1", taken(priority=100)), b=("n1", taken(priority=200)))
"""One node of two GPUs, held by pods of the waiting pod's own and of a higher priority."""


def gpus_held(*pods: str, needed: int, free: int = 0, node: str = "n1") -> Obstacle:
    return Obstacle(kind=ObstacleKind.RESOURCE, what=GPU, node=node, needed=needed, free=free, pods=pods)


def test_a_pod_that_fits_waits_only_for_the_scheduler() -> None:
    verdict = judged(needs(), room())

    assert (verdict.reason, verdict.obstacles, verdict.counts) == (Reason.SCHEDULABLE, (), ())


def test_pods_of_the_same_or_a_higher_priority_hold_what_it_needs() -> None:
    verdict = judged(needs(), FULL)

    assert (verdict.reason, verdict.node) == (Reason.CAPACITY, "n1")
    assert verdict.obstacles == (gpus_held("a", needed=1),)
    assert verdict.counts == ((ObstacleKind.RESOURCE, 1),)


def test_the_node_where_the_fewest_pods_must_go_explains_it() -> None:
    two = room(
        place("n1", gpu=4),
        place("n2", gpu=4),
        **{f"small-{number}": ("n1", taken()) for number in range(4)},
        big=("n2", taken(gpu=4)),
    )

    assert judged(needs(gpu=4), two).obstacles == (gpus_held("big", needed=4, node="n2"),)


def test_pods_of_lower_priority_are_about_to_be_preempted() -> None:
    verdict = judged(needs(priority=150), FULL)

    assert (verdict.reason, verdict.node, verdict.victims) == (Reason.PREEMPTING, "n1", ("a",))
    assert verdict.obstacles == ()


def test_only_its_policy_keeps_it_from_preempting() -> None:
    verdict = judged(needs(priority=150, may_preempt=False), FULL)

    assert (verdict.reason, verdict.victims) == (Reason.NEVER_PREEMPTS, ("a",))
    assert [each.kind for each in verdict.obstacles] == [ObstacleKind.POLICY]


def test_enough_gpus_are_free_but_on_no_single_node() -> None:
    nodes = room(place("n1", gpu=4), place("n2", gpu=4), a=("n1", taken(gpu=2)), b=("n2", taken(gpu=3)))

    verdict = judged(needs(gpu=3), nodes)

    assert verdict.reason is Reason.FRAGMENTED
    assert verdict.obstacles == (gpus_held("a", needed=3, free=2),)
    assert judged(needs(gpu=4), nodes).reason is Reason.CAPACITY


def test_gpus_that_could_be_preempted_count_as_available_where_it_may() -> None:
    nodes = room(
        place("n1", gpu=4),
        place("n2", gpu=4),
        a=("n1", taken(gpu=2)),
        b=("n1", taken(gpu=2, priority=1)),
        c=("n2", taken(gpu=2)),
        d=("n2", taken(gpu=2, priority=1)),
    )

    assert judged(needs(gpu=4), nodes).reason is Reason.FRAGMENTED
    assert judged(needs(gpu=4, may_preempt=False), nodes).reason is Reason.CAPACITY


@pytest.mark.parametrize(("missing", "small"), [("cpu", place(cpu=2)), ("pods", place(pods=1))])
def test_gpus_are_free_beside_a_shortage_of_something_else(missing: str, small: Place) -> None:
    verdict = judged(needs(), room(small, web=("n1", taken(gpu=0, cpu=2))))

    assert verdict.reason is Reason.OTHER_RESOURCE
    assert [(each.what, each.pods) for each in verdict.obstacles] == [(missing, ("web",))]


def test_no_node_is_large_enough() -> None:
    verdict = judged(needs(gpu=16), FULL)

    assert verdict.reason is Reason.IMPOSSIBLE
    assert verdict.obstacles == (
        Obstacle(kind=ObstacleKind.SIZE, what=GPU, node="n1", needed=16, free=2),
        gpus_held("b", "a", needed=2),
    )
    assert verdict.counts == ((ObstacleKind.SIZE, 1),)


def test_on_a_node_that_is_too_small_the_rest_is_what_it_has() -> None:
    verdict = judged(needs(gpu=16), room(place(gpu=4), a=("n1", taken())))

    assert verdict.obstacles[1:] == (gpus_held("a", needed=4, free=3),)


def test_no_node_offers_such_gpus_at_all() -> None:
    amd = Needs(namespace="ml", amounts=(("amd.com/gpu", 1), ("pods", 1)), gpus=("amd.com/gpu",))

    for nodes in (FULL, Room()):
        verdict = judged(amd, nodes)
        assert verdict.reason is Reason.IMPOSSIBLE
        assert verdict.obstacles == (Obstacle(kind=ObstacleKind.SIZE, what="amd.com/gpu", needed=1, free=0),)


def test_taints_cordons_and_selectors_exclude_it_from_all_nodes_that_are_large_enough() -> None:
    nodes = room(
        place("n1", taints=(Taint("team", "a", "NoSchedule"),), is_cordoned=True),
        place("n2", labels=(("pool", "b"),)),
        place("n3", gpu=1, labels=(("pool", "a"),)),
    )

    verdict = judged(needs(gpu=2, node_selector=(("pool", "a"),)), nodes)

    assert verdict.reason is Reason.EXCLUDED
    assert verdict.obstacles == (Obstacle(kind=ObstacleKind.SELECTOR, what="pool=a", node="n2"),)
    assert dict(verdict.counts) == {
        ObstacleKind.TAINT: 1,
        ObstacleKind.CORDON: 1,
        ObstacleKind.SELECTOR: 2,
        ObstacleKind.SIZE: 1,
    }


def test_victims_on_the_nominated_node_are_stopping() -> None:
    nodes = room(place(gpu=2), old=("n1", taken(priority=1)), other=("n1", taken(priority=500)))
    nodes.stop("n1", "old")
    nodes.nominate("n1", "me", taken(priority=100))

    verdict = judged(needs(), nodes, Situation(uid="me", nominated_node="n1"))

    assert (verdict.reason, verdict.node, verdict.victims) == (Reason.VICTIMS_STOPPING, "n1", ("old",))
    assert verdict.obstacles == (gpus_held("old", needed=1),)


def test_a_pod_that_may_not_preempt_waits_for_those_that_stop_anyway() -> None:
    nodes = room(place(gpu=1), old=("n1", taken(priority=500)))
    nodes.stop("n1", "old")

    assert judged(needs(may_preempt=False), nodes).reason is Reason.VICTIMS_STOPPING


def test_room_that_is_made_for_another_pod_is_not_free() -> None:
    nodes = room(place(gpu=1))
    nodes.nominate("n1", "other", taken(priority=100))

    assert judged(needs(), nodes).obstacles == (gpus_held("other", needed=1),)
    assert judged(needs(priority=101), nodes).reason is Reason.SCHEDULABLE


def test_a_serving_pod_behind_pods_that_serve_nobody_is_an_inversion() -> None:
    nodes = room(place(gpu=2), train=("n1", taken(priority=300)), serve=("n1", taken(priority=300, serving=True)))

    verdict = judged(needs(), nodes, Situation(is_serving=True))

    assert verdict.reason is Reason.INVERSION
    assert verdict.obstacles == (gpus_held("train", needed=1),)
    assert judged(needs(gpu=2), nodes, Situation(is_serving=True)).reason is Reason.CAPACITY
    assert judged(needs(), nodes).reason is Reason.CAPACITY


@pytest.mark.parametrize(
    ("situation", "gates", "reason"),
    [
        (Situation(has_scheduler=False), (), Reason.NO_SCHEDULER),
        (Situation(queue="waiting for quota"), ("kueue.x-k8s.io/admission",), Reason.QUEUED),
        (Situation(), ("wait",), Reason.GATED),
        (Situation(quota=QuotaState(name="q", what="pods", hard=4, used=4, needed=1)), (), Reason.QUOTA),
        (Situation(quota=QuotaState(name="q", what="pods", hard=4, used=0, needed=5)), (), Reason.QUOTA_NEVER),
        (Situation(open_claims=("gpu",)), (), Reason.CLAIM),
        (Situation(gang=GangState(name="g", least=4, members=3)), (), Reason.GANG),
    ],
)
def test_what_keeps_it_from_all_nodes_comes_first(situation: Situation, gates: tuple[str, ...], reason: Reason) -> None:
    free, full = judged(needs(gates=gates), room(), situation), judged(needs(gates=gates), FULL, situation)

    assert free.reason is full.reason is reason
    assert full.obstacles == (*free.obstacles, gpus_held("a", needed=1))


def test_what_the_scheduler_says_beyond_the_model_is_the_reason() -> None:
    text = "0/1 nodes are available: 1 node(s) had volume node affinity conflict. preemption: 0/1 nodes are available"

    verdict = judged(needs(unmodelled=("volumes",)), room(), Situation(text=text))

    assert verdict.reason is Reason.OTHER
    assert [each.what for each in verdict.obstacles] == ["node(s) had volume node affinity conflict"]
    assert judged(needs(), FULL, Situation(text=text)).reason is Reason.CAPACITY


def test_a_text_that_is_older_than_the_room_decides_nothing() -> None:
    text = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are available"

    assert judged(needs(), room(), Situation(text=text)).reason is Reason.SCHEDULABLE


def test_without_the_other_pods_only_verdicts_about_gpus_and_sizes_are_known() -> None:
    nodes, tainted = room(), room(place(taints=(Taint("t", "", "NoSchedule"),)))
    nodes.is_complete = tainted.is_complete = False

    assert judged(needs(), nodes).reason is Reason.UNKNOWN
    assert judged(needs(gpu=16), nodes).reason is Reason.IMPOSSIBLE
    assert judged(needs(), tainted).reason is Reason.EXCLUDED
    assert judged(needs(gates=("g",)), nodes).reason is Reason.GATED
    nodes.bind("n1", "a", taken(gpu=8))
    assert judged(needs(), nodes).reason is Reason.CAPACITY


def test_pods_that_are_known_before_their_node_count_once_it_is_there() -> None:
    nodes = Room()
    nodes.bind("n1", "a", taken(gpu=8))
    assert judged(needs(), nodes).reason is Reason.IMPOSSIBLE

    nodes.put_node(place())
    assert judged(needs(), nodes).obstacles == (gpus_held("a", needed=1),)

    nodes.drop_node("n1")
    assert judged(needs(), nodes).reason is Reason.IMPOSSIBLE
    nodes.put_node(place(uid="registered again"))
    assert judged(needs(), nodes).obstacles == (gpus_held("a", needed=1),)


def test_a_node_without_place_or_pods_is_forgotten() -> None:
    nodes = room(place(), a=("n1", taken()))

    nodes.drop_node("n1")
    assert list(nodes.nodes) == ["n1"]
    nodes.release("n1", "a")
    assert nodes.nodes == {}


def test_a_hostile_request_is_impossible_and_nothing_worse() -> None:
    huge = needs(gpu=2**63 - 1, tolerations=(Toleration(operator="Exists"),))

    assert judged(huge, FULL).reason is Reason.IMPOSSIBLE


def test_of_shares_of_gpus_and_of_countless_tolerations_nothing_is_known() -> None:
    for what in (SHARES, TOO_MANY):
        verdict = judged(needs(unmodelled=("volumes", what)), room())

        assert verdict.reason is Reason.OTHER
        assert verdict.obstacles == (Obstacle(kind=ObstacleKind.UNMODELLED, what=what),)


def test_pods_that_are_stopping_anyway_are_named_before_others() -> None:
    nodes = room(place(gpu=3), a=("n1", taken()), b=("n1", taken()), c=("n1", taken()))
    nodes.stop("n1", "a")

    assert judged(needs(gpu=2), nodes).obstacles == (gpus_held("c", "a", needed=2),)


def test_a_nominated_pod_fits_into_the_room_that_is_made_for_it() -> None:
    nodes = room(place(gpu=1))
    nodes.nominate("n1", "me", taken(priority=100))

    assert judged(needs(), nodes, Situation(uid="me", nominated_node="n1")).reason is Reason.SCHEDULABLE

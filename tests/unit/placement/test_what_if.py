from gputally.model.needs import QuotaState, Situation
from gputally.model.verdicts import Eviction, Reason
from gputally.placement.what_if import what_if
from tests.unit.placement.cluster import needs, place, room, taken


def test_a_pod_that_fits_may_go_to_any_node_where_it_does() -> None:
    found = what_if(needs(gpu=2), room(place("n1"), place("n2"), place("n3", gpu=1)))

    assert (found.fitting, found.nodes, found.evictions, found.verdict) == (1, ("n1", "n2"), (), None)


def test_the_pods_that_do_not_fit_preempt_one_after_the_other() -> None:
    nodes = room(
        place("n1", gpu=2),
        place("n2", gpu=2),
        a=("n1", taken(priority=1)),
        b=("n2", taken(priority=2)),
        c=("n2", taken(priority=500)),
    )

    found = what_if(needs(), nodes, count=4)

    assert (found.fitting, found.nodes) == (1, ("n1",))
    assert found.evictions == (Eviction(node="n1", victims=("a",)), Eviction(node="n2", victims=("b",)))
    assert found.verdict is not None
    assert found.verdict.reason is Reason.CAPACITY
    assert set(nodes.nodes["n1"].taken) == {"a"}


def test_several_small_pods_share_a_node() -> None:
    assert what_if(needs(gpu=3), room(), count=2).fitting == 2
    assert what_if(needs(gpu=3), room(), count=3).fitting == 2


def test_a_pod_uses_what_the_victims_of_another_leave() -> None:
    found = what_if(needs(), room(place(gpu=4), big=("n1", taken(gpu=4, priority=1))), count=2)

    assert found.evictions == (Eviction(node="n1", victims=("big",)), Eviction(node="n1", victims=()))
    assert found.verdict is None


def test_a_pod_that_has_no_place_has_a_verdict() -> None:
    found = what_if(needs(gpu=9), room())

    assert (found.fitting, found.verdict and found.verdict.reason) == (0, Reason.IMPOSSIBLE)


def test_a_quota_refuses_pods_that_would_fit() -> None:
    quota = QuotaState(name="q", what="requests.nvidia.com/gpu", hard=1, used=1, needed=1)

    found = what_if(needs(), room(), Situation(quota=quota))

    assert (found.fitting, found.verdict and found.verdict.reason) == (0, Reason.QUOTA)

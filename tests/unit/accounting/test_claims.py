"""What a pod's creator alone claims holds nothing: who may create pods chooses their node and their quantities."""

from dataclasses import replace
from fractions import Fraction

import pytest

from gputally.accounting.fleet.snapshot import publish
from gputally.accounting.totals.total import Total
from gputally.model.kube.kinds import Kind
from gputally.model.units import GPU_SECOND
from tests.core.manifests import NodeForm, PodForm, preempted_event, us
from tests.core.replay import Replay

NODE = NodeForm(labels={"nvidia.com/gpu.product": "A100"})
CLAIM = PodForm(created=10, node="n1", gpus=2)
ACCEPTED = replace(CLAIM, accepted=12)
BOUND = PodForm(created=8, node="n1", scheduled=10, gpus=2)
ACCEPTANCE = 600


def refused(claim: PodForm, *, at: int) -> PodForm:
    """The kubelet that refuses a pod writes its start time too."""
    no = replace(claim, accepted=at, statuses=False, phase="Failed", reason="OutOfnvidia.com/gpu")
    return replace(no, message="Pod was rejected: ...")


def cluster(*nodes: NodeForm) -> Replay:
    replay = Replay()
    replay.see(*nodes, at=1)
    return replay


def published(replay: Replay, at: float) -> Fraction:
    """All GPU-seconds that anybody is shown as allocated."""
    rows = replay.scrape(at).totals[Total.ALLOCATED]
    return Fraction(sum(row.value for row in rows), GPU_SECOND)


@pytest.mark.parametrize("node", ["n1", "no-such-node"])
def test_a_pod_whose_creator_chose_the_node_holds_nothing_until_the_kubelet_refuses_it(node: str) -> None:
    replay, claim = cluster(NODE), replace(CLAIM, gpus=10**9, node=node)
    replay.scrape(9)
    replay.see(claim, at=10)
    replay.scrape(10)
    shown = published(replay, 10.9)
    replay.see(refused(claim, at=11), at=11)

    assert shown == published(replay, 3600) == 0
    assert replay.capacity(20) == {"free": 19 * 8 + 8}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_pod_that_initialized_for_two_hours_is_billed_for_them_though_it_is_rejected(*, restarts: bool) -> None:
    replay = cluster(NODE)
    waiting = replace(BOUND, gpus=8, accepted=11, inits=((11, None),))
    replay.see(waiting, at=11)
    replay.scrape(7200)
    shown = published(replay, 7209)
    if restarts:
        replay.restart(at=7209)
        replay.see(NODE, at=7209)
    replay.see(refused(waiting, at=11), at=7210)

    assert shown == 8 * 7199
    assert published(replay, 9000) == 8 * 7200
    assert replay.by_state(9000) == {"starting": 8 * 7200}
    assert publish(replay.fleet, now_us=us(9000), ledger={}).differences == {"allocated": 0, "capacity": 0}


def test_a_rejection_that_removes_the_condition_of_the_scheduler_does_not_move_the_binding() -> None:
    """The pod had waited for an hour; a pod without that condition would be one that its creator bound."""
    replay, bound = cluster(NODE), PodForm(created=10, node="n1", scheduled=3610, gpus=8)
    replay.see(PodForm(created=10, gpus=8), at=10)
    replay.see(replace(bound, accepted=3611), at=3611)
    replay.see(replace(bound, accepted=3611, statuses=False), at=3700)
    replay.see(refused(replace(bound, accepted=3611), at=3611), at=3702)

    assert published(replay, 9000) == 8 * (3702 - 3610)


def test_pods_that_each_fit_a_node_hold_nothing_beyond_what_its_kubelet_takes() -> None:
    replay = cluster(NODE)
    claims = [replace(CLAIM, name=f"p{i}", gpus=8) for i in range(100)]
    replay.see(*claims, at=10)
    replay.see(replace(claims[0], accepted=11), at=11)
    replay.see(*(refused(claim, at=11) for claim in claims[1:]), at=11)

    assert replay.by_state(20) == {"starting": 80}


def test_a_claim_counts_from_its_creation_once_the_kubelet_has_accepted_it() -> None:
    replay = cluster(NODE)
    replay.see(CLAIM, at=10)
    replay.see(ACCEPTED, at=13)

    assert replay.spans() == [("starting", 10, None)]
    assert replay.by_state(20) == {"starting": 20}


def test_a_claim_that_was_bound_counts_in_any_order_of_its_forms() -> None:
    replay = cluster(NODE)
    replay.see(replace(ACCEPTED, version=2), at=13)
    replay.see(CLAIM, at=13)

    assert replay.spans() == [("starting", 10, None)]


def test_a_binding_of_which_the_scheduler_did_not_hear_counts_from_the_kubelets_word() -> None:
    replay = cluster(NODE)
    unheard = replace(BOUND, unscheduled=11)
    replay.see(unheard, at=11)
    unaccepted = replay.by_state(12)
    replay.see(replace(unheard, accepted=12), at=13)

    assert unaccepted == {}
    assert replay.spans() == [("starting", 12, None)]


def test_a_binding_that_was_seen_counts_though_the_scheduler_takes_it_back() -> None:
    replay = cluster(NODE)
    replay.see(BOUND, at=10)
    replay.see(replace(BOUND, unscheduled=11, accepted=12, version=2), at=13)

    assert replay.spans() == [("starting", 10, None)]


def test_a_claim_is_no_scheduled_pod_until_it_is_accepted() -> None:
    replay = cluster(NODE)
    replay.see(CLAIM, at=10)
    assert replay.true(Total.SCHEDULED, 20) == {}

    replay.see(ACCEPTED, at=13)
    assert replay.true(Total.SCHEDULED, 20) == {("none", "1"): 1}


def test_a_resource_that_its_node_does_not_offer_counts_nothing_though_kubelets_let_it_pass() -> None:
    replay = cluster(NODE)
    replay.see(replace(ACCEPTED, resource="gpu.intel.com/xe", gpus=10**9, started=13), at=13)

    assert replay.gpu_seconds(60) == {}


def test_a_pod_has_no_more_than_its_node_ever_offered() -> None:
    replay = cluster(NODE)
    replay.see(replace(BOUND, gpus=10**9, accepted=10), at=10)

    assert replay.by_state(20) == {"starting": 80}


def test_what_a_node_offered_once_still_limits_when_its_plugin_is_down() -> None:
    replay = cluster(NODE, replace(NODE, gpus=0))
    replay.see(replace(BOUND, gpus=8, accepted=10), at=10)

    assert replay.by_state(20) == {"starting": 80}


def test_a_node_that_offers_its_gpus_late_gives_its_pods_all_their_time() -> None:
    replay = cluster(replace(NODE, gpus=0))
    replay.see(replace(BOUND, accepted=10), at=10)
    replay.see(NODE, at=15)

    assert replay.by_state(20) == {"starting": 20}


def test_what_a_node_offered_is_known_over_a_restart() -> None:
    replay = cluster(NODE, replace(NODE, gpus=0))
    replay.flush()
    replay.restart()
    replay.see(replace(BOUND, gpus=10, accepted=10), at=10)

    assert replay.by_state(20) == {"starting": 80}


def test_a_pod_that_no_kubelet_accepts_holds_its_gpus_for_a_stated_time() -> None:
    replay = cluster(NODE)
    replay.see(BOUND, at=10)

    replay.scrape(10)
    assert published(replay, 10 + ACCEPTANCE) == 2 * ACCEPTANCE
    assert published(replay, 3600) == 2 * ACCEPTANCE
    assert replay.spans() == [("starting", 10, 10 + ACCEPTANCE)]


def test_a_pod_accepted_late_has_held_its_gpus_all_along() -> None:
    replay = cluster(NODE)
    replay.see(BOUND, at=10)
    replay.scrape(2000)
    replay.see(replace(BOUND, accepted=2500), at=2501)

    assert replay.spans() == [("starting", 10, None)]
    assert replay.by_state(3010) == {"starting": 6000}


def test_the_time_to_be_accepted_goes_on_over_a_restart() -> None:
    replay = cluster(NODE)
    replay.see(BOUND, at=10)
    replay.flush()
    replay.restart()
    replay.scrape(10)

    assert published(replay, 3600) == 2 * ACCEPTANCE

    replay.restart()
    assert published(replay, 7200) == 2 * ACCEPTANCE


def test_a_pod_that_ends_before_it_is_accepted_keeps_the_time_it_had() -> None:
    replay = cluster(NODE)
    replay.see(BOUND, at=10)
    replay.lose(BOUND, at=310)

    assert replay.spans() == [("starting", 10, 310)]


def test_a_pod_that_nobody_accepted_and_that_vanishes_leaves_nothing_blind_beyond_the_stated_time() -> None:
    replay = cluster(NODE)
    replay.see(BOUND, at=10)
    replay.relist(Kind.PODS, at=3000, since=2000)

    assert replay.spans() == [("starting", 10, 10 + ACCEPTANCE)]
    assert replay.gpu_seconds(4000, Total.UNOBSERVED) == {}


def test_an_event_from_another_namespace_than_the_victims_is_forged() -> None:
    preemptor = PodForm(name="by", tier="high", created=49)
    victim = replace(BOUND, tier="low", uid="uid-victim", accepted=10)
    replay = cluster(NODE)
    replay.see(victim, preemptor, at=49)
    replay.see(replace(victim, marked=50, deleted=50), at=51)
    replay.see_event(preempted_event(replace(victim, namespace="mallory"), by=preemptor), at=51)

    replay.scrape(200)
    assert replay.true(Total.PREEMPTIONS, 200) == {("low", "unknown"): 1}

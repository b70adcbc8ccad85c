"""The end of an allocation, as pod and node tell it together."""

from dataclasses import replace
from fractions import Fraction

import pytest

from gputally.accounting.fleet.snapshot import publish
from gputally.accounting.totals.total import Total
from gputally.model.allocation import Gap
from gputally.model.kube.kinds import Kind
from tests.core.manifests import Json, NodeForm, PodForm, as_pod, instant, us
from tests.core.replay import Replay

NODE = NodeForm(created=0, gpus=8, machine="4c4c4544-0035")
POD = PodForm(created=200, node="n1", scheduled=203, gpus=8, version=2)
RUNNING = replace(POD, inits=((204, 232),), started=233, version=3)
COLLECTED = replace(RUNNING, phase="Failed", marked=7440, mark="DeletionByPodGC", version=4)
REMOVED = replace(COLLECTED, deleted=7440, grace=0, version=5)
AGAIN = replace(NODE, uid="uid-n1-again", created=7405)


def billed(replay: Replay, at: float) -> Fraction:
    """GPU-seconds; the laws hold as well."""
    snapshot = publish(replay.fleet, now_us=us(at), ledger={})
    assert snapshot.differences == {"allocated": 0, "capacity": 0}
    replay.flush()
    return sum(replay.gpu_seconds(at).values(), Fraction(0))


def running(node: NodeForm = NODE) -> Replay:
    replay = Replay()
    replay.see(node, at=1)
    replay.see(RUNNING, at=234)
    return replay


def gap(replay: Replay) -> Gap | None:
    replay.flush()
    return replay.memory.revisions["uid-a"].gap


def test_a_pod_that_pod_gc_made_terminal_did_not_end_with_its_init_container() -> None:
    replay = running()
    replay.lose(NODE, at=7403)
    replay.see(COLLECTED, at=7440)
    replay.lose(REMOVED, at=7441)

    assert billed(replay, 8000) == 8 * (7403 - 203)
    assert replay.spans()[-1] == ("running", 233, 7403)
    assert gap(replay) is None


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 0, 2, 3), (0, 2, 1, 3), (3, 0, 1, 2)])
def test_of_a_node_that_was_lost_the_end_lies_between_its_loss_and_what_was_observed(order: tuple[int, ...]) -> None:
    lost = replace(NODE, ready="Unknown", ready_since=5000, version=2)
    replay = running()
    tell = (
        lambda: replay.see(lost, at=5001),
        lambda: replay.lose(lost, at=7403),
        lambda: replay.see(COLLECTED, at=7440),
        lambda: None,
    )
    for step in order:
        tell[step]()

    if order.index(0) < order.index(1):
        assert billed(replay, 8000) == 8 * (5000 - 203)
        assert gap(replay) == Gap(from_us=us(5000), to_us=us(7403))


def unknown(form: PodForm) -> PodForm:
    return replace(form, lost=True, phase="Failed", version=9)


def test_a_container_that_its_kubelet_cannot_find_ended_when_that_was_observed() -> None:
    replay = running()
    replay.see(unknown(RUNNING), at=7000)

    assert billed(replay, 8000) == 8 * (7000 - 203)
    assert gap(replay) is None


def test_a_container_that_its_kubelet_cannot_find_after_the_node_was_lost_ended_at_any_time_since() -> None:
    replay = running()
    replay.see(replace(NODE, ready="Unknown", ready_since=5000), at=5001)
    replay.see(replace(NODE, ready="True", ready_since=6990), at=6991)
    replay.see(unknown(RUNNING), at=7000)

    assert billed(replay, 8000) == 8 * (5000 - 203)
    assert gap(replay) == Gap(from_us=us(5000), to_us=us(7000))


def test_a_node_that_was_lost_long_before_says_nothing() -> None:
    replay = running()
    replay.see(replace(NODE, ready="Unknown", ready_since=5000), at=5001)
    replay.see(replace(NODE, ready="True", ready_since=6000), at=6001)
    replay.see(unknown(RUNNING), at=7000)

    assert billed(replay, 8000) == 8 * (7000 - 203)


def test_a_finish_that_comes_to_light_later_replaces_what_was_observed() -> None:
    replay = running()
    replay.lose(NODE, at=7403)
    replay.see(COLLECTED, at=7440)
    replay.see(replace(RUNNING, phase="Failed", finished=7420, version=9), at=7500)

    assert billed(replay, 8000) == 8 * (7420 - 203)
    assert replay.by_state(8000, Total.CAPACITY)["overcommitted"] == 8 * (7420 - 7403)


@pytest.mark.parametrize(
    ("main", "initialized", "end"),
    [
        ({"waiting": {"reason": "PodInitializing"}}, False, 240),
        ({"waiting": {"reason": "ContainerCreating"}}, True, 300),
        ({"terminated": {"startedAt": None, "finishedAt": None, "exitCode": 137}}, True, 300),
        ({"terminated": {"startedAt": instant(250), "finishedAt": instant(290)}}, True, 290),
        ({"running": {"startedAt": instant(250)}}, True, 300),
    ],
)
def test_an_init_container_ends_a_pod_only_if_no_other_ran_or_should_have(
    *, main: Json, initialized: bool, end: int
) -> None:
    manifest = replace(POD, phase="Failed", inits=((204, 240),)).manifest()
    manifest["status"]["containerStatuses"] = [{"name": "main", "state": main, "lastState": {}}]
    manifest["status"]["conditions"].append({"type": "Initialized", "status": str(initialized)})
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see_pod(as_pod(manifest), at=300)

    assert billed(replay, 8000) == 8 * (end - 203)


def test_a_container_that_waits_to_be_restarted_had_its_devices_until_its_pod_was_terminal() -> None:
    manifest = replace(RUNNING, phase="Failed").manifest()
    last = {"terminated": {"startedAt": instant(233), "finishedAt": instant(400), "exitCode": 1}}
    manifest["status"]["containerStatuses"] = [{"state": {"waiting": {}}, "lastState": last}]
    replay = Replay()
    replay.see(NODE, at=1)
    replay.see_pod(as_pod(manifest), at=500)

    assert billed(replay, 8000) == 8 * (500 - 203)


def test_a_node_whose_deletion_is_observed_late_clips_nothing_that_the_api_dates_later() -> None:
    node, pod = replace(NODE, gpus=4), replace(POD, created=0, scheduled=0, started=1, gpus=1, version=3)
    replay = Replay(opened=0)
    replay.see(node, at=1)
    replay.see(pod, at=2)
    replay.flush()
    replay.restart()
    replay.relist(Kind.NODES, at=10800, since=3600)
    replay.see(replace(pod, phase="Succeeded", finished=10200, version=4), at=10800, since=3600)

    assert billed(replay, 11000) == 10200
    assert gap(replay) is None
    assert replay.by_state(11000, Total.CAPACITY) == {"allocated": 10200, "free": 3 * 10200}


def test_a_pod_without_a_dated_end_ended_somewhere_in_the_time_in_which_its_node_went() -> None:
    replay = running()
    replay.relist(Kind.NODES, at=10800, since=3600)

    assert billed(replay, 11000) == 8 * (3600 - 203)
    assert gap(replay) == Gap(from_us=us(3600), to_us=us(10800))


@pytest.mark.parametrize("nodes_first", [True, False])
def test_a_pod_that_lived_on_a_node_that_came_and_went_while_nobody_watched_has_its_model(*, nodes_first: bool) -> None:
    node = replace(NODE, created=4000, labels={"nvidia.com/gpu.product": "H100"})
    pod = replace(POD, created=4100, scheduled=4100, started=4101, phase="Succeeded", finished=4200)
    replay = Replay()

    def tell_node() -> None:
        replay.see(node, at=9000, since=3600)
        replay.lose(node, at=9000, since=3600)

    if nodes_first:
        tell_node()
    replay.see(pod, at=9000, since=3600)
    replay.lose(pod, at=9000, since=3600)
    if not nodes_first:
        replay.flush()
        replay.restart()
        tell_node()

    assert {labels[2] for labels in replay.gpu_seconds(9100)} == {"H100"}
    assert billed(replay, 9100) == 800
    assert replay.fleet.pods.records == {}


def test_a_deleted_pod_of_a_node_that_nobody_tells_of_is_forgotten() -> None:
    replay = Replay()
    replay.see(POD, at=300)
    replay.lose(POD, at=400)
    replay.fleet.advance(us(1100))

    assert replay.fleet.pods.records == {}


def test_a_node_that_registers_anew_goes_on_with_its_pods() -> None:
    replay = running()
    replay.lose(NODE, at=7400)
    assert billed(replay, 7405) == 8 * (7400 - 203)
    replay.see(AGAIN, at=7406)

    assert billed(replay, 8000) == 8 * (8000 - 203)
    assert replay.by_state(8000, Total.CAPACITY) == {
        "allocated": 8 * (8000 - 203),
        "free": 8 * 203,
        "overcommitted": 8 * 5,
    }
    assert sum(replay.gpu_seconds(8000, Total.PHYSICAL).values()) == 8 * 7995


@pytest.mark.parametrize("machine", ["", "another"])
def test_another_machine_under_the_same_name_has_its_gpus_free(machine: str) -> None:
    replay = running(replace(NODE, machine=machine and NODE.machine))
    replay.lose(NODE, at=7400)
    replay.see(replace(AGAIN, machine=machine), at=7406)

    assert billed(replay, 8000) == 8 * (7400 - 203)
    assert replay.by_state(8000, Total.CAPACITY)["free"] == 8 * 203 + 8 * (8000 - 7405)


def test_a_node_that_registered_anew_unseen_goes_on_with_its_pods_over_restarts() -> None:
    replay = running()
    replay.flush()
    replay.restart()
    replay.relist(Kind.NODES, AGAIN, at=9000, since=7000)
    replay.flush()
    replay.restart()
    replay.see(replace(RUNNING, phase="Succeeded", finished=9500, version=7), at=9501)

    assert billed(replay, 10000) == 8 * (9500 - 203)
    assert "overcommitted" not in replay.by_state(10000, Total.CAPACITY)


def test_a_pod_on_a_node_that_registered_anew_twice_ends_with_the_last() -> None:
    third = replace(AGAIN, uid="uid-n1-third", created=7505)
    replay = running()
    replay.lose(NODE, at=7400)
    replay.see(AGAIN, at=7405)
    replay.lose(AGAIN, at=7500)
    replay.see(third, at=7505)
    replay.lose(third, at=7600)
    replay.see(replace(COLLECTED, marked=7640), at=7640)

    assert billed(replay, 8000) == 8 * (7600 - 203)
    assert replay.by_state(8000, Total.CAPACITY)["overcommitted"] == 8 * 10


def test_a_node_that_registers_anew_after_a_restart_goes_on_with_its_pods() -> None:
    replay = running()
    replay.lose(NODE, at=7400)
    replay.flush()
    replay.restart()
    replay.see(AGAIN, at=7405)

    assert billed(replay, 8203) == 8 * 8000


@pytest.mark.parametrize("restarts", [False, True])
def test_nothing_is_kept_of_incarnations_that_are_long_gone(*, restarts: bool) -> None:
    replay = running()
    replay.lose(NODE, at=7400)
    replay.see(AGAIN, at=7405)
    replay.lose(AGAIN, at=7500)
    replay.lose(RUNNING, at=7540)
    if restarts:
        replay.flush()
        replay.restart()
    for later in range(7600, 7600 + 48 * 3600, 1800):
        replay.fleet.advance(us(later))

    assert replay.fleet.nodes.accounts == {}
    assert replay.fleet.nodes.lineage._next == {}

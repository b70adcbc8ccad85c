from gputally_sim.instants import rfc3339
from gputally_sim.node.pods import GPU
from gputally_sim.simulation import Simulation
from tests.unit.sim.world import (
    START_US,
    add,
    condition,
    exists,
    key,
    node,
    node_of,
    pod,
    read,
    recorded,
    seconds,
    small_world,
)


def test_a_new_node_becomes_ready() -> None:
    world = small_world(nodes=1)

    ready = condition(world.registry.read("nodes", ("", "n0")).doc, "Ready")

    assert (ready["status"], ready["reason"]) == ("True", "KubeletReady")


def test_no_pod_goes_to_a_node_that_is_not_ready() -> None:
    world = small_world(nodes=1)
    world.nodes.mark_not_ready("n0")
    add(world, pod("a"))

    world.run_for(seconds(5))
    assert not node_of(world, "a")

    world.nodes.mark_ready("n0")
    world.run_for(seconds(5))
    assert node_of(world, "a") == "n0"


def test_pods_on_an_unreachable_node_neither_end_nor_stop_until_it_is_back() -> None:
    world = small_world(nodes=2)
    add(world, pod("ending", lasts_us=seconds(60)), pod("deleted"))
    world.run_for(seconds(10))
    for name in ("n0", "n1"):
        world.nodes.mark_unknown(name)
    world.registry.delete("pods", key("deleted"))

    world.run_for(seconds(500))
    assert read(world, "ending")["status"]["phase"] == "Running"
    assert "deletionTimestamp" in read(world, "deleted")["metadata"]

    for name in ("n0", "n1"):
        world.nodes.mark_ready(name)
    world.run_for(seconds(1))
    assert read(world, "ending")["status"]["phase"] == "Succeeded"
    assert not exists(world, "deleted")


def test_a_node_back_in_time_ends_no_pod_early() -> None:
    world = small_world(nodes=1)
    add(world, pod("a", lasts_us=seconds(600)))
    world.run_for(seconds(10))

    world.nodes.mark_unknown("n0")
    world.nodes.mark_ready("n0")
    world.run_for(seconds(300))

    assert read(world, "a")["status"]["phase"] == "Running"


def test_pods_of_a_deleted_node_fail_and_are_removed_by_force() -> None:
    world = small_world(nodes=1)
    add(world, pod("a"))
    world.run_for(seconds(10))
    changes = recorded(world, "pods")

    world.nodes.delete("n0")
    world.run_for(seconds(39))
    assert changes == []

    world.run_for(seconds(2))
    assert [change.verb for change in changes] == ["MODIFIED", "MODIFIED", "DELETED"]
    failed = changes[0].now.doc
    assert failed["status"]["phase"] == "Failed"
    assert condition(failed, "DisruptionTarget")["reason"] == "DeletionByPodGC"


def test_a_node_that_returns_under_its_name_in_time_keeps_its_pods() -> None:
    world = small_world(nodes=1)
    add(world, pod("a", lasts_us=seconds(20)))
    world.run_for(seconds(10))
    world.nodes.delete("n0")
    world.run_for(seconds(30))

    world.registry.create("nodes", node("n0"))
    world.run_for(seconds(60))

    assert read(world, "a")["status"]["phase"] == "Succeeded"


def test_a_kubelet_that_registers_anew_goes_on_with_its_pods() -> None:
    world = small_world(nodes=1)
    add(world, pod("a", lasts_us=seconds(20)))
    world.run_for(seconds(10))
    former = world.registry.read("nodes", ("", "n0")).doc

    world.nodes.reregister("n0", after_us=seconds(5))
    world.run_for(seconds(60))

    again = world.registry.read("nodes", ("", "n0")).doc
    assert again["metadata"]["uid"] != former["metadata"]["uid"]
    assert again["status"]["nodeInfo"] == former["status"]["nodeInfo"]
    assert condition(again, "Ready")["status"] == "True"
    assert read(world, "a")["status"]["phase"] == "Succeeded"


def test_gpus_taken_from_a_node_are_not_given_out() -> None:
    world = small_world(nodes=1, gpus=2)
    world.nodes.set_allocatable("n0", {GPU: "1"})
    add(world, pod("a"), pod("b"))

    world.run_for(seconds(1))

    assert [bool(node_of(world, name)) for name in ("a", "b")] == [True, False]


def test_a_cordoned_node_keeps_its_pods_and_takes_no_more() -> None:
    world = small_world(nodes=1, gpus=2)
    add(world, pod("a"))
    world.run_for(seconds(1))
    world.nodes.cordon("n0")
    add(world, pod("b"))
    world.run_for(seconds(1))

    assert [bool(node_of(world, name)) for name in ("a", "b")] == [True, False]

    world.nodes.cordon("n0", unschedulable=False)
    world.run_for(seconds(1))
    assert node_of(world, "b") == "n0"


def test_a_node_times_what_it_says_of_itself_but_not_what_is_said_of_it() -> None:
    world = small_world(nodes=1)
    world.nodes.set_clock("n0", ahead_us=seconds(30))

    world.run_for(seconds(60))
    world.nodes.mark_not_ready("n0")
    own = ready_since(world)
    world.nodes.mark_unknown("n0")

    assert (own, ready_since(world)) == (rfc3339(START_US + seconds(90)), rfc3339(START_US + seconds(60)))


def ready_since(world: Simulation) -> str:
    since: str = condition(world.registry.read("nodes", ("", "n0")).doc, "Ready")["lastTransitionTime"]
    return since

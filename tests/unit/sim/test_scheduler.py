from gputally_sim.instants import rfc3339
from tests.unit.sim.world import START_US, add, condition, key, node_of, pod, read, recorded, seconds, small_world


def test_a_pod_that_fits_is_bound_in_one_write() -> None:
    world = small_world()
    changes = recorded(world, "pods")
    add(world, pod("a", starts_after_us=seconds(60)))

    world.run_for(seconds(1))

    created, bound = changes
    assert "nodeName" not in created.now.doc["spec"]
    assert bound.now.doc["spec"]["nodeName"] in {"n0", "n1"}
    assert condition(bound.now.doc, "PodScheduled")["status"] == "True"
    assert condition(bound.now.doc, "PodScheduled")["lastTransitionTime"] == rfc3339(START_US)


def test_pods_are_spread_over_nodes() -> None:
    world = small_world(nodes=2, gpus=2)
    add(world, pod("a"), pod("b"))

    world.run_for(seconds(1))

    assert {node_of(world, "a"), node_of(world, "b")} == {"n0", "n1"}


def test_a_pod_that_does_not_fit_says_why() -> None:
    world = small_world(nodes=3)
    add(world, pod("a", gpus=2))

    world.run_for(seconds(1))

    scheduled = condition(read(world, "a"), "PodScheduled")
    assert (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")
    assert scheduled["message"] == (
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. "
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )


def test_reasons_are_counted_by_node_and_sorted() -> None:
    world = small_world(nodes=4)
    world.nodes.cordon("n0")
    world.nodes.mark_unknown("n1")
    chosen = pod("a")
    chosen["spec"]["nodeSelector"] = {"pool": "big"}
    add(world, chosen)

    world.run_for(seconds(1))

    assert condition(read(world, "a"), "PodScheduled")["message"].startswith(
        "0/4 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }, "
        "1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector. "
    )


def test_without_nodes_there_is_nothing_to_count() -> None:
    world = small_world(nodes=0)
    add(world, pod("a"))

    world.run_for(seconds(1))

    assert condition(read(world, "a"), "PodScheduled")["message"] == "no nodes available to schedule pods"


def test_higher_priority_goes_first_then_who_came_first() -> None:
    world = small_world(nodes=0)
    add(world, pod("low", "low"), pod("early", "high"), pod("late", "high"))
    world.run_for(seconds(1))

    for _ in range(2):
        world.registry.create(
            "nodes",
            {"metadata": {"generateName": "x-"}, "status": {"allocatable": {"nvidia.com/gpu": "1"}}},
        )
    world.run_for(seconds(1))

    assert node_of(world, "early")
    assert node_of(world, "late")
    assert not node_of(world, "low")


def test_a_waiting_pod_is_tried_again_when_another_has_ended() -> None:
    world = small_world(nodes=1)
    add(world, pod("first", lasts_us=seconds(60)), pod("second"))

    world.run_for(seconds(59))
    assert not node_of(world, "second")

    world.run_for(seconds(2))
    assert node_of(world, "second") == "n0"


def test_a_refusal_repeated_is_not_written_again() -> None:
    world = small_world(nodes=1)
    add(world, pod("holder", "high"), pod("waiting", "low"))
    world.run_for(seconds(1))
    changes = recorded(world, "pods")

    world.registry.patch("nodes", ("", "n0"), {"metadata": {"labels": {"touched": "yes"}}})
    world.run_for(seconds(1))

    assert changes == []


def test_an_untolerated_taint_keeps_pods_away_and_a_tolerated_one_does_not() -> None:
    world = small_world(nodes=1)
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    world.registry.patch("nodes", ("", "n0"), {"spec": {"taints": [taint]}})
    tolerant = pod("tolerant")
    tolerant["spec"]["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    add(world, pod("other"), tolerant)

    world.run_for(seconds(1))

    assert node_of(world, "tolerant") == "n0"
    assert "untolerated taint {gpu: yes}" in condition(read(world, "other"), "PodScheduled")["message"]


def test_a_pod_for_another_scheduler_is_left_alone() -> None:
    world = small_world()
    foreign = pod("a")
    foreign["spec"]["schedulerName"] = "volcano"
    add(world, foreign)

    world.run_for(seconds(1))

    assert "conditions" not in read(world, "a")["status"]


def test_a_pod_deleted_while_it_waits_takes_no_room() -> None:
    world = small_world(nodes=1)
    add(world, pod("holder"), pod("gone"), pod("next"))
    world.run_for(seconds(1))

    world.registry.delete("pods", key("gone"))
    world.registry.delete("pods", key("holder"))
    world.run_for(seconds(1))

    assert node_of(world, "next") == "n0"


def test_a_pod_waits_for_cpu_beside_free_gpus_and_preempts_pods_without_gpus_for_it() -> None:
    world = small_world(nodes=1, gpus=2)
    add(world, pod("busy", "medium", gpus=0, cpus=90))
    world.run_for(seconds(1))
    add(world, pod("a", "medium"))
    world.run_for(seconds(1))

    assert condition(read(world, "a"), "PodScheduled")["message"].startswith(
        "0/1 nodes are available: 1 Insufficient cpu."
    )
    add(world, pod("b", "high"))
    world.run_for(seconds(60))
    assert node_of(world, "b") == "n0"


def test_a_node_takes_no_more_pods_than_it_may_have() -> None:
    world = small_world(nodes=1, gpus=4)
    world.nodes.set_allocatable("n0", {"pods": "1"})
    add(world, pod("a"), pod("b"))
    world.run_for(seconds(1))

    assert (node_of(world, "a"), node_of(world, "b")) == ("n0", "")
    assert condition(read(world, "b"), "PodScheduled")["message"].startswith(
        "0/1 nodes are available: 1 Too many pods."
    )


def test_a_pod_with_a_resource_claim_waits_for_it() -> None:
    world = small_world(nodes=1)
    claiming = pod("a")
    claiming["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimName": "two-gpus"}]
    add(world, claiming)
    world.run_for(seconds(1))

    message = condition(read(world, "a"), "PodScheduled")["message"]
    assert message.startswith("0/1 nodes are available: 1 cannot allocate all claims.")

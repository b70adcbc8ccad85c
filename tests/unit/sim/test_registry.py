import pytest

from gputally_sim.api.refusals import StatusError
from gputally_sim.documents import Doc
from gputally_sim.instants import rfc3339
from gputally_sim.node.pods import GPU, effective_requests
from gputally_sim.scenarios import workloads
from tests.unit.sim.world import NAMESPACE, START_US, add, exists, key, pod, read, recorded, seconds, small_world


def container(count: int = 0, **fields: object) -> Doc:
    return {"name": "c", "resources": {"requests": {GPU: str(count)} if count else {}}, **fields}


def test_the_priority_of_a_pod_is_that_of_its_class() -> None:
    world = small_world()

    add(world, pod("a", "high"), pod("b", "modest"))

    spec = read(world, "a")["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "PreemptLowerPriority")
    assert read(world, "b")["spec"]["preemptionPolicy"] == "Never"


def test_a_pod_without_a_class_gets_the_global_default_or_zero() -> None:
    world = small_world()
    add(world, pod("before"))

    world.registry.create("priorityclasses", {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True})
    add(world, pod("after"))

    assert read(world, "before")["spec"]["priority"] == 0
    after = read(world, "after")["spec"]
    assert (after["priority"], after["priorityClassName"]) == (7, "usual")


def test_a_pod_of_an_unknown_class_is_forbidden() -> None:
    with pytest.raises(StatusError, match="no PriorityClass with name absent was found") as refusal:
        add(small_world(), pod("a", "absent"))

    assert refusal.value.code == 403


def test_a_priority_of_the_pods_own_is_forbidden() -> None:
    contradicting = pod("a", "high")
    contradicting["spec"]["priority"] = 5

    with pytest.raises(StatusError, match=r"the integer value of priority \(5\) must not be provided"):
        add(small_world(), contradicting)


def test_limits_become_requests() -> None:
    world = small_world()

    add(world, pod("a"))

    assert read(world, "a")["spec"]["containers"][0]["resources"]["requests"][GPU] == "1"


def test_unequal_requests_and_limits_of_gpus_are_invalid() -> None:
    unequal = pod("a")
    unequal["spec"]["containers"][0]["resources"] = {"requests": {GPU: "2"}, "limits": {GPU: "4"}}

    with pytest.raises(StatusError, match=r"must be equal to nvidia\.com/gpu request") as refusal:
        add(small_world(), unequal)

    assert refusal.value.code == 422


def test_sidecars_add_to_the_effective_request_and_init_containers_only_raise_it() -> None:
    sidecar = container(1, restartPolicy="Always")

    assert effective_requests({"containers": [container(2)], "initContainers": [sidecar]}) == {GPU: 3}
    assert effective_requests({"containers": [container(2)], "initContainers": [container(4), sidecar]}) == {GPU: 4}
    assert effective_requests({"containers": [container(2)], "initContainers": [sidecar, container(4)]}) == {GPU: 5}
    assert effective_requests({"containers": [container()]}) == {}


def test_deleting_a_bound_pod_sets_the_request_plus_its_grace() -> None:
    world = small_world()
    add(world, pod("a", grace_seconds=45, stops_after_us=seconds(20)))
    world.run_for(seconds(10))

    world.registry.delete("pods", key("a"))

    meta = read(world, "a")["metadata"]
    assert meta["deletionTimestamp"] == rfc3339(START_US + seconds(10 + 45))
    assert meta["deletionGracePeriodSeconds"] == 45


def test_a_second_deletion_may_only_shorten_the_grace() -> None:
    world = small_world()
    add(world, pod("a", stops_after_us=seconds(20)))
    world.run_for(seconds(10))
    world.registry.delete("pods", key("a"))
    world.run_for(seconds(2))

    world.registry.delete("pods", key("a"), grace_seconds=60)
    assert read(world, "a")["metadata"]["deletionGracePeriodSeconds"] == 30

    world.registry.delete("pods", key("a"), grace_seconds=5)
    meta = read(world, "a")["metadata"]
    assert meta["deletionTimestamp"] == rfc3339(START_US + seconds(10 + 5))


def test_an_unscheduled_pod_vanishes_at_once() -> None:
    world = small_world(nodes=0)
    add(world, pod("a"))

    world.registry.delete("pods", key("a"))

    assert not exists(world, "a")


def test_a_forced_deletion_tells_of_grace_zero_and_then_of_the_end() -> None:
    world = small_world()
    add(world, pod("a", stops_after_us=seconds(20)))
    world.run_for(seconds(1))
    changes = recorded(world, "pods")

    world.registry.delete("pods", key("a"), grace_seconds=0)

    assert [change.verb for change in changes] == ["MODIFIED", "DELETED"]
    assert changes[0].now.doc["metadata"]["deletionGracePeriodSeconds"] == 0
    assert changes[1].now.doc["metadata"]["resourceVersion"] == str(world.store.version)
    assert changes[1].now.doc["status"] == changes[0].now.doc["status"]


def test_a_finalizer_keeps_a_deleted_object_until_it_is_taken_off() -> None:
    world = small_world(nodes=0)
    guarded = pod("a")
    guarded["metadata"]["finalizers"] = ["example.org/guard"]
    add(world, guarded)

    world.registry.delete("pods", key("a"))
    assert exists(world, "a")

    world.registry.patch("pods", key("a"), {"metadata": {"finalizers": None}})
    assert not exists(world, "a")


def test_a_patch_that_changes_nothing_is_no_change() -> None:
    world = small_world()
    add(world, pod("a"))
    changes = recorded(world, "pods")

    world.registry.patch("pods", key("a"), {"metadata": {"labels": {"app": "a"}}})

    assert changes == []


def test_status_and_the_rest_are_written_apart() -> None:
    world = small_world(nodes=0)
    add(world, pod("a"))

    world.registry.patch("pods", key("a"), {"status": {"phase": "Running"}})
    assert read(world, "a")["status"]["phase"] == "Pending"

    world.registry.patch("pods", key("a"), {"status": {"phase": "Running"}, "spec": {"nodeName": "n9"}}, status=True)
    assert read(world, "a")["status"]["phase"] == "Running"
    assert "nodeName" not in read(world, "a")["spec"]


def test_a_changed_spec_is_a_new_generation_and_a_changed_status_is_not() -> None:
    world = small_world()
    world.registry.create("deployments", workloads.deployment(workloads.Work(app="d", kind="test"), 0), NAMESPACE)

    world.registry.patch("deployments", key("d"), {"spec": {"replicas": 1}})
    world.registry.patch("deployments", key("d"), {"status": {"replicas": 1}}, status=True)

    assert read(world, "d", "deployments")["metadata"]["generation"] == 2


def test_a_stale_version_conflicts() -> None:
    world = small_world()
    add(world, pod("a"))

    with pytest.raises(StatusError, match="the object has been modified") as refusal:
        world.registry.patch("pods", key("a"), {"metadata": {"resourceVersion": "1"}})

    assert refusal.value.code == 409


def test_a_name_is_taken_once() -> None:
    world = small_world()
    add(world, pod("a"))

    with pytest.raises(StatusError, match='pods "a" already exists'):
        add(world, pod("a"))


def test_the_next_object_of_a_name_has_another_uid() -> None:
    world = small_world(nodes=0)
    add(world, pod("a"))
    former = read(world, "a")["metadata"]["uid"]
    world.registry.delete("pods", key("a"))

    add(world, pod("a"))

    assert read(world, "a")["metadata"]["uid"] != former


def test_a_bound_pod_is_not_bound_again() -> None:
    world = small_world()
    add(world, pod("a"))
    world.registry.bind(key("a"), "n1")

    with pytest.raises(StatusError, match='pod a is already assigned to node "n1"'):
        world.registry.bind(key("a"), "n0")


def test_nothing_is_created_in_a_namespace_that_does_not_exist() -> None:
    with pytest.raises(StatusError, match='namespaces "nowhere" not found'):
        small_world().registry.create("pods", pod("a"), "nowhere")


def test_a_pod_behind_a_gate_says_so_and_is_not_scheduled() -> None:
    world = small_world()
    gated = pod("a")
    gated["spec"]["schedulingGates"] = [{"name": "example.org/quota"}]
    add(world, gated)
    world.run_for(seconds(5))

    assert read(world, "a")["status"]["conditions"][0]["reason"] == "SchedulingGated"

    world.registry.patch("pods", key("a"), {"spec": {"schedulingGates": None}})
    world.run_for(seconds(5))
    assert read(world, "a")["spec"]["nodeName"]

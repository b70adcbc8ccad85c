from gputally_sim.documents import Doc, controller_of
from gputally_sim.scenarios import workloads
from gputally_sim.scenarios.workloads import Work
from gputally_sim.simulation import Simulation
from tests.unit.sim.world import NAMESPACE, condition, key, read, seconds, small_world


def deployed(replicas: int, *, nodes: int = 4) -> Simulation:
    world = small_world(nodes=nodes)
    world.registry.create("deployments", workloads.deployment(Work(app="d", kind="test"), replicas), NAMESPACE)
    world.run_for(seconds(5))
    return world


def pods(world: Simulation) -> list[Doc]:
    return world.store.docs("pods")


def test_a_deployment_has_one_replica_set_which_has_the_pods() -> None:
    world = deployed(2)

    (replica_set,) = world.store.docs("replicasets")
    owner = controller_of(replica_set)
    assert owner
    assert (owner["kind"], owner["name"], owner["apiVersion"]) == ("Deployment", "d", "apps/v1")
    template_hash = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert replica_set["metadata"]["name"] == f"d-{template_hash}"
    assert len(pods(world)) == 2
    for pod in pods(world):
        assert pod["metadata"]["labels"]["pod-template-hash"] == template_hash
        assert pod["metadata"]["name"].startswith(f"d-{template_hash}-")
        reference = controller_of(pod)
        assert reference
        assert (reference["kind"], reference["uid"]) == ("ReplicaSet", replica_set["metadata"]["uid"])


def test_the_status_counts_pods_that_serve() -> None:
    world = deployed(6, nodes=4)

    status = read(world, "d", "deployments")["status"]

    assert (status["replicas"], status["readyReplicas"]) == (6, 4)


def test_scaling_down_takes_the_pods_that_wait_first() -> None:
    world = deployed(6, nodes=4)

    world.registry.patch("deployments", key("d"), {"spec": {"replicas": 4}})
    world.run_for(seconds(1))

    assert [pod["status"]["phase"] for pod in pods(world)] == ["Running"] * 4


def test_a_pod_that_went_is_replaced() -> None:
    world = deployed(2)
    gone = pods(world)[0]["metadata"]["name"]

    world.registry.delete("pods", key(gone))
    world.run_for(seconds(5))

    names = {pod["metadata"]["name"] for pod in pods(world)}
    assert len(names) == 2
    assert gone not in names


def test_with_its_deployment_everything_goes() -> None:
    world = deployed(2)

    world.registry.delete("deployments", key("d"))
    world.run_for(seconds(5))

    assert pods(world) == []
    assert world.store.docs("replicasets") == []


def test_with_its_namespace_everything_goes() -> None:
    world = deployed(2)

    world.registry.delete("namespaces", ("", NAMESPACE))
    world.run_for(seconds(60))

    assert pods(world) == []
    assert world.store.docs("deployments") == []


def test_refused_pods_are_asked_for_again() -> None:
    world = small_world()
    work = Work(app="d", kind="test", tier="later")
    world.registry.create("deployments", workloads.deployment(work, 1), NAMESPACE)
    world.run_for(seconds(5))
    assert pods(world) == []

    world.registry.create("priorityclasses", workloads.priority_class("later", 5))
    world.run_for(seconds(15))

    assert len(pods(world)) == 1


def test_a_budget_says_how_many_pods_may_go() -> None:
    world = deployed(3)
    world.registry.create("poddisruptionbudgets", workloads.budget("d", 2), NAMESPACE)
    world.run_for(seconds(1))

    status = read(world, "d", "poddisruptionbudgets")["status"]
    assert (status["expectedPods"], status["currentHealthy"], status["disruptionsAllowed"]) == (3, 3, 1)

    world.registry.delete("pods", key(pods(world)[0]["metadata"]["name"]))
    world.run_for(0)
    assert read(world, "d", "poddisruptionbudgets")["status"]["disruptionsAllowed"] == 0


def test_a_percentage_of_pods_is_rounded_up() -> None:
    world = deployed(3)
    half = workloads.budget("d", 0)
    half["spec"]["minAvailable"] = "50%"
    world.registry.create("poddisruptionbudgets", half, NAMESPACE)
    world.run_for(seconds(1))

    assert read(world, "d", "poddisruptionbudgets")["status"]["desiredHealthy"] == 2


def test_a_pod_that_serves_is_ready() -> None:
    world = deployed(1)

    assert condition(pods(world)[0], "Ready")["status"] == "True"

import pytest

from gputally_sim.api.refusals import StatusError
from gputally_sim.documents import Doc
from gputally_sim.instants import MINUTE_US
from gputally_sim.node.pods import GPU
from gputally_sim.scenarios import workloads
from gputally_sim.scenarios.workloads import Work
from gputally_sim.simulation import Simulation
from tests.unit.sim.world import NAMESPACE, add, exists, pod, read, small_world

KEY = f"requests.{GPU}"


def limited(gpus: int) -> Simulation:
    """The namespace may have so many GPUs in pods of the class low."""
    world = small_world(nodes=2, gpus=4)
    world.registry.create("resourcequotas", workloads.quota("low", gpus), NAMESPACE)
    return world


def used(world: Simulation) -> Doc:
    found: Doc = read(world, "low-quota", "resourcequotas")["status"]
    return found


def test_a_pod_beyond_its_quota_is_rejected_with_what_is_used() -> None:
    world = limited(3)
    add(world, pod("a", "low", gpus=2))

    with pytest.raises(StatusError) as rejected:
        add(world, pod("b", "low", gpus=2))

    assert rejected.value.message == (
        f'pods "b" is forbidden: exceeded quota: low-quota, requested: {KEY}=2, used: {KEY}=2, limited: {KEY}=3'
    )
    assert not exists(world, "b")


def test_pods_of_other_classes_and_namespaces_are_not_counted() -> None:
    world = limited(1)
    world.registry.create("namespaces", workloads.namespace("other"))

    add(world, pod("a", "high", gpus=2), pod("b", gpus=2))
    world.registry.create("pods", pod("c", "low", gpus=2), "other")

    assert exists(world, "a")


@pytest.mark.parametrize(
    ("operator", "values", "counted"),
    [("In", ["low"], 1), ("NotIn", ["low"], 2), ("NotIn", ["high"], 2), ("Exists", [], 2), ("DoesNotExist", [], 1)],
)
def test_a_scope_selects_pods_by_their_class(operator: str, values: list[str], counted: int) -> None:
    world = small_world(nodes=2, gpus=4)
    quota = workloads.quota("low", 8)
    quota["spec"]["scopeSelector"]["matchExpressions"][0] |= {"operator": operator, "values": values}
    world.registry.create("resourcequotas", quota, NAMESPACE)

    add(world, pod("a", "low", gpus=1), pod("b", "high", gpus=1), pod("c", gpus=1))
    world.run_for(MINUTE_US)

    assert used(world)["used"] == {KEY: str(counted)}


def test_a_quota_without_limits_admits_all() -> None:
    world = small_world(nodes=2, gpus=4)
    quota = workloads.quota("low", 8)
    del quota["spec"]["hard"]
    world.registry.create("resourcequotas", quota, NAMESPACE)

    add(world, pod("a", "low", gpus=2))
    world.run_for(MINUTE_US)

    assert exists(world, "a")
    assert used(world) == {"hard": {}, "used": {}}


def test_its_status_says_what_pods_use_until_they_end() -> None:
    world = limited(3)
    add(world, pod("a", "low", gpus=2, lasts_us=MINUTE_US))
    world.run_for(MINUTE_US // 2)
    before = used(world)
    world.run_for(MINUTE_US)

    assert before == {"hard": {KEY: "3"}, "used": {KEY: "2"}}
    assert used(world)["used"] == {KEY: "0"}
    add(world, pod("b", "low", gpus=3))


def test_a_job_gets_its_pod_once_the_quota_has_room() -> None:
    world = limited(2)
    add(world, pod("a", "low", gpus=2, lasts_us=MINUTE_US))
    job = workloads.job(Work(app="j", kind="test", tier="low", gpus=2), "j", parallelism=1, completions=1)
    world.registry.create("jobs", job, NAMESPACE)
    world.run_for(MINUTE_US // 2)
    refused = [doc for doc in world.store.docs("events") if doc["reason"] == "FailedCreate"]
    world.run_for(5 * MINUTE_US)

    assert refused
    assert read(world, "j", "jobs")["status"]["active"] == 1

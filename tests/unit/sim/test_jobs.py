from typing import Any

from gputally_sim.control.jobs import TRACKING
from gputally_sim.documents import Doc, controller_of
from gputally_sim.scenarios import workloads
from gputally_sim.scenarios.workloads import Work
from gputally_sim.simulation import Simulation
from tests.unit.sim.world import NAMESPACE, add, condition, exists, key, pod, read, recorded, seconds, small_world


def working(parallelism: int, completions: int, *, nodes: int = 4, **behaviour: Any) -> Simulation:  # noqa: ANN401 - of Work
    world = small_world(nodes=nodes)
    work = Work(app="j", kind="test", tier="low", lasts_us=seconds(60), **behaviour)
    job = workloads.job(work, "j", parallelism=parallelism, completions=completions)
    world.registry.create("jobs", job, NAMESPACE)
    world.run_for(seconds(1))
    return world


def phases(world: Simulation) -> list[str]:
    return [doc["status"]["phase"] for doc in world.store.docs("pods")]


def status(world: Simulation) -> Doc:
    found: Doc = read(world, "j", "jobs")["status"]
    return found


def test_the_pods_of_a_job_carry_its_labels_and_reference() -> None:
    world = working(1, 1)

    (owned,) = world.store.docs("pods")
    uid = read(world, "j", "jobs")["metadata"]["uid"]
    labels = owned["metadata"]["labels"]
    assert labels["batch.kubernetes.io/job-name"] == labels["job-name"] == "j"
    assert labels["batch.kubernetes.io/controller-uid"] == labels["controller-uid"] == uid
    reference = controller_of(owned)
    assert reference
    assert (reference["kind"], reference["apiVersion"], reference["uid"]) == ("Job", "batch/v1", uid)
    assert owned["metadata"]["finalizers"] == [TRACKING]


def test_a_job_runs_its_pods_in_parallel_until_enough_have_succeeded() -> None:
    world = working(2, 3)
    assert phases(world) == ["Running", "Running"]

    world.run_for(seconds(200))

    assert phases(world) == ["Succeeded"] * 3
    assert status(world)["succeeded"] == 3
    assert condition(read(world, "j", "jobs"), "Complete")["status"] == "True"


def test_an_ended_pod_is_counted_once_and_released() -> None:
    world = working(1, 1)

    world.run_for(seconds(200))

    (owned,) = world.store.docs("pods")
    assert "finalizers" not in owned["metadata"]


def test_scaling_down_ends_pods_without_counting_them_as_failures() -> None:
    world = working(3, 3)

    world.registry.patch("jobs", key("j"), {"spec": {"parallelism": 1}})
    world.run_for(seconds(5))

    assert (status(world)["active"], status(world)["failed"]) == (1, 0)


def test_a_suspended_job_has_no_pods() -> None:
    world = working(2, 2)

    world.registry.patch("jobs", key("j"), {"spec": {"suspend": True}})
    world.run_for(seconds(5))
    assert phases(world) == []

    world.registry.patch("jobs", key("j"), {"spec": {"suspend": False}})
    world.run_for(seconds(5))
    assert phases(world) == ["Running", "Running"]


def test_a_job_that_fails_too_often_gives_up() -> None:
    world = working(1, 1, fails=True)

    world.run_for(seconds(3600))

    assert status(world)["failed"] == 4
    assert condition(read(world, "j", "jobs"), "Failed")["reason"] == "BackoffLimitExceeded"


def test_a_failed_pod_is_replaced_after_a_pause_that_doubles() -> None:
    world = working(1, 1, fails=True)
    changes = recorded(world, "pods")

    world.run_for(seconds(60 + 10 + 60 + 20 + 1))

    created = [change.now.doc["metadata"]["creationTimestamp"] for change in changes if change.verb == "ADDED"]
    assert created == ["2026-03-02T06:01:10Z", "2026-03-02T06:02:30Z"]


def test_a_preempted_pod_is_replaced_once_it_has_ended_and_is_no_failure() -> None:
    world = working(1, 1, nodes=1, stops_after_us=seconds(10))
    (victim,) = [doc["metadata"]["name"] for doc in world.store.docs("pods")]
    add(world, pod("preemptor", "high", lasts_us=seconds(100)))

    world.run_for(seconds(5))
    assert len(world.store.docs("pods")) == 2

    world.run_for(seconds(20))
    assert not exists(world, victim)
    assert len(world.store.docs("pods")) == 2
    assert status(world)["failed"] == 0

    world.run_for(seconds(300))
    assert status(world)["succeeded"] == 1


def test_without_a_failure_policy_a_preempted_pod_counts_and_is_replaced_at_once() -> None:
    world = small_world(nodes=2)
    work = Work(app="j", kind="test", tier="low", stops_after_us=seconds(10))
    job = workloads.job(work, "j", parallelism=1, completions=1)
    del job["spec"]["podFailurePolicy"]
    world.registry.create("jobs", job, NAMESPACE)
    world.run_for(seconds(1))

    (owned,) = world.store.docs("pods")
    world.registry.delete("pods", key(owned["metadata"]["name"]))
    world.run_for(seconds(11))

    assert status(world)["failed"] == 1
    assert phases(world) == ["Running"]


def test_a_finished_job_is_cleared_away_with_its_pods() -> None:
    world = working(1, 1)

    world.run_for(seconds(7 * 3600))

    assert world.store.docs("jobs") == []
    assert world.store.docs("pods") == []


def test_a_job_that_gives_up_stops_its_other_pods_and_waits_for_their_end() -> None:
    world = small_world(nodes=2)
    job = workloads.job(Work(app="j", kind="test", stops_after_us=seconds(10)), "j", parallelism=2, completions=2)
    job["spec"] |= {"backoffLimit": 0, "podFailurePolicy": None}
    world.registry.create("jobs", job, NAMESPACE)
    world.run_for(seconds(1))

    world.registry.delete("pods", key(world.store.docs("pods")[0]["metadata"]["name"]), grace_seconds=0)
    world.run_for(seconds(1))
    assert status(world)["failed"] == 2
    assert [each["type"] for each in status(world)["conditions"]] == ["FailureTarget"]

    world.run_for(seconds(10))
    assert [each["type"] for each in status(world)["conditions"]] == ["FailureTarget", "Failed"]
    assert phases(world) == []


def test_a_job_without_completions_waits_for_the_pods_that_still_run() -> None:
    world = small_world(nodes=2)
    job = workloads.job(Work(app="j", kind="test"), "j", parallelism=2, completions=2)
    del job["spec"]["completions"]
    world.registry.create("jobs", job, NAMESPACE)
    world.run_for(seconds(1))
    first, second = (doc["metadata"]["name"] for doc in world.store.docs("pods"))

    succeed(world, first)
    world.run_for(seconds(60))
    assert phases(world) == ["Succeeded", "Running"]
    assert "conditions" not in status(world)

    succeed(world, second)
    world.run_for(seconds(1))
    assert condition(read(world, "j", "jobs"), "Complete")["reason"] == "CompletionsReached"


def succeed(world: Simulation, name: str) -> None:
    world.registry.patch("pods", key(name), {"status": {"phase": "Succeeded"}}, status=True)

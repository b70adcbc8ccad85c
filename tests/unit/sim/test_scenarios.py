import pytest

from gputally_sim.api.store import Change
from gputally_sim.documents import controller_of, labels_of
from gputally_sim.instants import DAY_US, HOUR_US, MINUTE_US, parse_instant
from gputally_sim.node.pods import effective_requests, is_active, node_of
from gputally_sim.scenarios.fleet import Fleet, NodePool
from gputally_sim.simulation import Simulation

MONDAY_US = parse_instant("2026-03-02T06:00:00Z")


GANG_PODS = [
    (namespace, f"{job}-{role}-0")
    for namespace, job in (("ml-training", "llm-pretrain"), ("ml-vision", "vlm-pretrain"))
    for role in ("master", "worker")
]


def begun(name: str, *, seed: int = 3, fleet: Fleet | None = None) -> Simulation:
    world = Simulation(seed=seed, start_us=MONDAY_US)
    world.run_scenario(name, fleet)
    return world


def history(world: Simulation) -> list[Change]:
    changes: list[Change] = []
    for plural in ("pods", "nodes", "jobs", "deployments", "replicasets", "events", "poddisruptionbudgets"):
        world.store.subscribe(plural, changes.append)
    return changes


def bodies(name: str, seed: int, *steps: int) -> list[bytes]:
    world = begun(name, seed=seed)
    changes = history(world)
    for step_us in steps:
        world.run_for(step_us)
    return [change.now.body for change in changes]


@pytest.mark.parametrize("name", ["s1", "s2", "waits"])
def test_a_seed_fixes_every_byte_however_time_is_sliced(name: str) -> None:
    at_once = bodies(name, 3, 2 * DAY_US)
    in_pieces = bodies(name, 3, *[7 * MINUTE_US] * (2 * DAY_US // (7 * MINUTE_US)), 3 * MINUTE_US)

    assert len(at_once) > 500
    assert in_pieces == at_once[: len(in_pieces)]
    assert len(in_pieces) == len(at_once)


@pytest.mark.parametrize("name", ["s1", "s2", "waits"])
def test_another_seed_gives_another_history(name: str) -> None:
    assert bodies(name, 3, DAY_US) != bodies(name, 4, DAY_US)


def running(world: Simulation, kind: str) -> int:
    pods = [doc for doc in world.store.docs("pods") if is_active(doc) and node_of(doc)]
    return sum(labels_of(doc)["workload-type"] == kind for doc in pods)


def test_inference_has_six_gpus_by_day_and_training_most_of_them_by_night() -> None:
    world = begun("s1")

    world.run_until(MONDAY_US + 6 * HOUR_US)
    by_day = running(world, "inference"), running(world, "training")
    world.run_until(MONDAY_US + 15 * HOUR_US)
    by_night = running(world, "inference"), running(world, "training")

    assert by_day[0] == 6
    assert by_night[0] == 2
    assert by_night[1] >= 5


def test_every_weekday_morning_inference_preempts_training() -> None:
    world = begun("s1")
    changes = history(world)

    world.run_for(5 * DAY_US)

    preempted = [change.now.doc for change in changes if change.plural == "events" and change.verb == "ADDED"]
    mornings = {doc["eventTime"][:10] for doc in preempted if "T07:30" in doc["eventTime"]}
    assert mornings == {f"2026-03-0{day}" for day in range(2, 7)}
    assert {doc["related"]["name"].split("-")[0] for doc in preempted if "T07:30" in doc["eventTime"]} >= {"llm"}


def test_every_tier_of_s1_gets_to_run_and_one_pod_has_none() -> None:
    world = begun("s1")
    changes = history(world)

    world.run_for(3 * DAY_US)

    bound = [change.now.doc["spec"] for change in changes if change.plural == "pods" and node_of(change.now.doc)]
    assert {spec.get("priorityClassName", "") for spec in bound} == {
        "inference-critical",
        "inference-standard",
        "training-high",
        "training-standard",
        "training-low",
        "",
    }


def test_scaling_of_training_is_the_work_of_a_cron_job() -> None:
    world = begun("s1")

    world.run_until(MONDAY_US + 12 * HOUR_US + MINUTE_US)

    scalers = [doc for doc in world.store.docs("jobs") if doc["metadata"]["name"].startswith("scale-training-up-")]
    (owner,) = [controller_of(doc) for doc in scalers]
    assert owner
    assert (owner["kind"], owner["name"]) == ("CronJob", "scale-training-up")
    assert world.registry.read("jobs", ("ml-training", "pretrain")).doc["spec"]["parallelism"] == 3


def test_one_team_has_no_label() -> None:
    namespaces = begun("s1").store.docs("namespaces")

    unlabelled = {doc["metadata"]["name"] for doc in namespaces if "team" not in labels_of(doc)}

    assert unlabelled == {"default", "kube-system", "sandbox"}


def test_a_larger_fleet_of_other_gpus_gets_as_many_times_more_work() -> None:
    fleet = Fleet(
        (NodePool("l4-pool", 16, product="NVIDIA-L4", accelerator="nvidia-l4", instance_type="g2-standard-4"),)
    )
    world = begun("s1", fleet=fleet)

    world.run_until(MONDAY_US + 6 * HOUR_US)

    assert running(world, "inference") == 12
    (product,) = {labels_of(doc)["nvidia.com/gpu.product"] for doc in world.store.docs("nodes")}
    assert product == "NVIDIA-L4"


def test_no_node_ever_holds_more_than_it_has() -> None:
    world = begun("s1")
    for _ in range(200):
        world.run_for(17 * MINUTE_US)
        held = [node_of(doc) for doc in world.store.docs("pods") if doc["status"]["phase"] in ("Pending", "Running")]
        gpus = [name for name in held if name]
        assert len(gpus) - len(set(gpus)) <= sum(
            not effective_requests(doc["spec"]) for doc in world.store.docs("pods") if node_of(doc)
        )


def test_whole_node_training_preempts_notebooks_which_preempt_nobody() -> None:
    world = begun("s2")
    changes = history(world)

    world.run_for(4 * DAY_US)

    events = [change.now.doc for change in changes if change.plural == "events" and change.verb == "ADDED"]
    victims = {doc["involvedObject"]["name"].split("-")[0] for doc in events}
    preemptors = {doc["related"]["name"].split("-")[0] for doc in events}
    assert "notebook" in victims
    assert "llm" in preemptors
    assert "notebook" not in preemptors


def test_quotas_of_s2_are_scoped_by_priority_class() -> None:
    quotas = begun("s2").store.docs("resourcequotas")

    scopes = {doc["spec"]["scopeSelector"]["matchExpressions"][0]["values"][0] for doc in quotas}

    assert scopes == {"gpu-training", "gpu-serving", "gpu-batch", "gpu-interactive"}
    assert len(quotas) == 3 * 4


def test_a_pytorch_job_pod_is_owned_and_labelled_as_kubeflow_does() -> None:
    world = begun("s2")
    world.run_until(MONDAY_US + 5 * HOUR_US)

    masters = [doc for doc in world.store.docs("pods") if doc["metadata"]["name"].endswith("-master-0")]

    (master,) = masters
    owner = controller_of(master)
    assert owner
    assert (owner["apiVersion"], owner["kind"]) == ("kubeflow.org/v1", "PyTorchJob")
    assert labels_of(master)["training.kubeflow.org/job-name"] == owner["name"]
    assert effective_requests(master["spec"]) == {"nvidia.com/gpu": 8}


def waiting(world: Simulation) -> set[str]:
    pods = [doc for doc in world.store.docs("pods") if is_active(doc) and not node_of(doc)]
    return {doc["metadata"]["name"] for doc in pods}


def test_two_gangs_of_waits_have_one_pod_each_for_as_long_as_it_runs() -> None:
    world = begun("waits")
    for _ in range(48):
        world.run_for(HOUR_US)
        nodes = {key[1]: node_of(world.registry.read("pods", key).doc) for key in GANG_PODS}
        assert {name for name, node in nodes.items() if node} == {"llm-pretrain-master-0", "vlm-pretrain-master-0"}
        assert nodes["llm-pretrain-master-0"] != nodes["vlm-pretrain-master-0"]


def test_sweeps_of_waits_never_leave_the_whole_node_that_the_evaluation_needs() -> None:
    world = begun("waits")
    world.run_for(2 * DAY_US)

    sweeps = world.registry.read("jobs", ("ml-vision", "sweep")).doc["status"]
    assert sweeps["succeeded"] > 100
    assert "evaluate" in waiting(world)


def test_inference_of_waits_has_the_priority_of_the_training_that_holds_its_gpus() -> None:
    world = begun("waits")
    world.run_for(HOUR_US)

    priority = {doc["metadata"]["name"]: doc["value"] for doc in world.store.docs("priorityclasses")}
    assert priority["inference-standard"] == priority["training-standard"]
    assert [name.rpartition("-")[0].rpartition("-")[0] for name in waiting(world) if "api" in name] == ["llm-api"]
    assert running(world, "inference") == 2

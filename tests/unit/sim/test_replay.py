import logging

import pytest

from gputally_sim.documents import Doc, labels_of
from gputally_sim.instants import rfc3339
from gputally_sim.node.pods import GPU, effective_requests
from gputally_sim.simulation import Simulation
from gputally_sim.trace.replay import KEPT_US, MILLI_GPU, Replay
from gputally_sim.trace.trace import Trace, TraceNode, TracePod
from tests.unit.sim.world import START_US, condition, recorded, seconds


def row(name: str, start: int | None, end: int | None, status: str = "Succeeded", **more: object) -> TracePod:
    """Submitted at 0, unless `submit_s` says otherwise."""
    plain: dict[str, object] = {"tenant": "", "qos": "", "gpu_types": (), "gpu_milli": 1000, "submit_s": 0}
    return TracePod(id=name, start_s=start, end_s=end, status=status, **(plain | more))  # type: ignore[arg-type]  # any field


def begun(*rows: TracePod, nodes: tuple[TraceNode, ...] = ()) -> tuple[Simulation, Replay]:
    world = Simulation(seed=1, start_us=START_US)
    replay = Replay(world.registry, Trace(rows), nodes)
    replay.begin()
    return world, replay


def pod(world: Simulation, name: str, namespace: str = "trace") -> Doc:
    return world.registry.read("pods", (namespace, name)).doc


def terminated(doc: Doc) -> Doc:
    (status,) = doc["status"]["containerStatuses"]
    found: Doc = status["state"]["terminated"]
    return found


@pytest.mark.parametrize(
    ("status", "phase", "code"),
    [("Succeeded", "Succeeded", 0), ("Pass", "Succeeded", 0), ("Failed", "Failed", 1), ("Killed", "Failed", 1)],
)
def test_a_pod_is_bound_starts_and_ends_when_its_row_says(status: str, phase: str, code: int) -> None:
    world, _ = begun(row("a", 7, 19, status, submit_s=5))

    world.run_for(seconds(30))

    ended = pod(world, "a")
    assert ended["metadata"]["creationTimestamp"] == rfc3339(START_US + seconds(5))
    assert condition(ended, "PodScheduled")["lastTransitionTime"] == rfc3339(START_US + seconds(7))
    assert terminated(ended)["startedAt"] == rfc3339(START_US + seconds(7))
    assert terminated(ended)["finishedAt"] == rfc3339(START_US + seconds(19))
    assert (ended["status"]["phase"], terminated(ended)["exitCode"]) == (phase, code)


def test_a_pod_that_ran_when_it_was_deleted_ends_in_that_second() -> None:
    world, _ = begun(row("a", 0, 1, "Running"))
    changes = recorded(world, "pods")

    world.run_for(seconds(2))

    assert changes[-1].verb == "DELETED"
    assert terminated(changes[-1].now.doc)["finishedAt"] == rfc3339(START_US + seconds(1))


def test_a_pod_never_scheduled_is_never_bound_and_goes_at_its_end_if_it_has_one() -> None:
    world, _ = begun(row("gone", None, 10, "Pending"), row("waits", None, None, "Pending"))

    world.run_for(seconds(9))
    assert "nodeName" not in pod(world, "gone")["spec"]

    world.run_for(seconds(1_000_000))
    assert [doc["metadata"]["name"] for doc in world.store.docs("pods")] == ["waits"]


def test_what_ended_is_cleared_away_after_a_while() -> None:
    world, _ = begun(row("a", 0, 10))

    world.run_for(seconds(9) + KEPT_US)
    assert world.store.docs("pods")

    world.run_for(seconds(2))
    assert not world.store.docs("pods")


def test_what_ended_out_of_reach_is_not_cleared_away_before_that_is_told() -> None:
    world, _ = begun(row("a", 0, 10))
    world.run_for(seconds(5))
    world.nodes.mark_unknown("joined-0")

    world.run_for(seconds(20) + KEPT_US)
    assert pod(world, "a")["status"]["phase"] == "Running"

    world.nodes.mark_ready("joined-0")
    assert terminated(pod(world, "a"))["finishedAt"] == rfc3339(START_US + seconds(10))
    world.run_for(KEPT_US)
    assert not world.store.docs("pods")


def test_parts_of_gpus_are_asked_for_in_thousandths_on_nodes_that_offer_nothing_else() -> None:
    nodes = tuple(TraceNode(name=f"n{number}", gpu_type="T4", gpus=2) for number in range(4))
    world, _ = begun(row("part", 0, 9, gpu_milli=460), row("odd", 0, 9, gpu_milli=1500), row("two", 0, 9), nodes=nodes)

    world.run_for(seconds(1))

    asked = {doc["metadata"]["name"]: effective_requests(doc["spec"]) for doc in world.store.docs("pods")}
    assert asked == {"part": {MILLI_GPU: 460}, "odd": {MILLI_GPU: 1500}, "two": {GPU: 1}}
    offered = [
        {name: count for name, count in doc["status"]["allocatable"].items() if "/" in name}
        for doc in world.store.docs("nodes")
    ]
    assert offered == [{GPU: "2"}, {MILLI_GPU: "2000"}] * 2


def test_without_parts_every_node_offers_whole_gpus() -> None:
    nodes = tuple(TraceNode(name=f"n{number}", gpu_type="", gpus=1) for number in range(3))

    world, _ = begun(row("a", 0, 9), nodes=nodes)

    assert all(doc["status"]["allocatable"][GPU] == "1" for doc in world.store.docs("nodes"))


def test_pods_are_packed_and_a_node_joins_when_nothing_fits() -> None:
    nodes = (TraceNode(name="n0", gpu_type="T4", gpus=2),)
    rows = [row(name, 0, 9) for name in ("a", "b", "c")] + [row("later", 9, 20), row("large", 1, 9, gpu_milli=16_000)]
    world, _ = begun(*rows, nodes=nodes)

    world.run_for(seconds(10))

    where = {doc["metadata"]["name"]: doc["spec"]["nodeName"] for doc in world.store.docs("pods")}
    assert where == {"a": "n0", "b": "n0", "c": "joined-0", "large": "joined-1", "later": "n0"}
    assert world.registry.read("nodes", ("", "joined-1")).doc["status"]["capacity"][GPU] == "16"


def test_a_pod_goes_only_to_gpus_of_a_type_it_takes() -> None:
    nodes = (TraceNode(name="t4", gpu_type="T4", gpus=1), TraceNode(name="v100", gpu_type="V100M16", gpus=8))
    world, _ = begun(row("a", 0, 9, gpu_types=("V100M32", "V100M16")), row("b", 0, 9, gpu_types=("G2",)), nodes=nodes)

    world.run_for(seconds(1))

    products = {
        doc["metadata"]["name"]: labels_of(world.registry.read("nodes", ("", doc["spec"]["nodeName"])).doc)
        for doc in world.store.docs("pods")
    }
    assert {name: labels["nvidia.com/gpu.product"] for name, labels in products.items()} == {
        "a": "Tesla-V100-SXM2-16GB",
        "b": "G2",
    }


def test_each_qos_is_a_priority_class_and_each_tenant_a_namespace() -> None:
    world, _ = begun(row("A_1", 0, 9, tenant="User 1", qos="LS"), row("b", 0, 9, qos="BE"))

    world.run_for(seconds(1))

    assert pod(world, "a-1", "user-1")["spec"]["priorityClassName"] == "ls"
    assert pod(world, "a-1", "user-1")["spec"]["priority"] > pod(world, "b")["spec"]["priority"]


def test_the_trace_begins_with_a_whole_second_and_its_progress_is_known() -> None:
    world = Simulation(seed=1, start_us=START_US + 1)
    replay = Replay(world.registry, Trace((row("a", 0, 10),)))
    assert (replay.progress, replay.begun_us) == (0, None)

    replay.begin()
    world.run_until(START_US + seconds(6))

    assert (replay.begun_us, replay.end_us) == (START_US + seconds(1), START_US + seconds(11))
    assert replay.progress == 0.5
    world.run_for(seconds(99))
    assert replay.progress == 1


def test_the_next_pod_alone_is_on_the_agenda() -> None:
    world, _ = begun(*(row(f"p{number}", None, None, "Pending", submit_s=number) for number in range(1000)))

    assert len(world.agenda._entries) < 10


def test_a_pod_deleted_by_somebody_else_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    world, _ = begun(row("a", 5, 9, "Running"), row("b", 5, 9, "Running"))
    world.run_for(seconds(1))
    world.registry.delete("pods", ("trace", "a"))

    with caplog.at_level(logging.WARNING):
        world.run_for(seconds(5))

    assert pod(world, "b")["status"]["phase"] == "Running"
    assert 'a request of the scenario failed: pods "a" not found' in caplog.text


def test_a_seed_fixes_every_byte() -> None:
    assert bodies() == bodies()


def bodies() -> list[bytes]:
    world = Simulation(seed=3, start_us=START_US)
    changes = recorded(world, "pods", "nodes", "namespaces", "priorityclasses")
    Replay(world.registry, Trace((row("a", 0, 9, tenant="x", qos="LS"), row("b", 1, 4, "Killed")))).begin()
    world.run_for(seconds(10))
    return [change.now.body for change in changes]

"""Who has which devices of simulated nodes, and what becomes of these."""

from collections import Counter
from random import Random

from gputally_sim.documents import Doc
from gputally_sim.instants import MINUTE_US, SECOND_US
from gputally_sim.node.devices import Devices
from gputally_sim.node.gpus import GpuNode
from gputally_sim.node.pods import GPU
from gputally_sim.node.utilisation import FULL, UTILISATION
from gputally_sim.scenarios.fleet import NodePool, gpu_node
from gputally_sim.simulation import Simulation
from tests.unit.sim.world import START_US, add, furnish, key, node_of, pod, seconds

REPLICAS = 4


def world(*, nodes: int = 1, gpus: int = 2) -> tuple[Simulation, Devices]:
    sim = Simulation(seed=1, start_us=START_US)
    devices = Devices(sim.registry, seed=1)
    furnish(sim, nodes=nodes, gpus=gpus)
    return sim, devices


def shared_world() -> tuple[Simulation, GpuNode]:
    """One node with two GPUs, each of which is offered as four."""
    sim, devices = world(nodes=0)
    sim.registry.create("nodes", gpu_node("s", NodePool("pool", 1, 2), offered={GPU: 2 * REPLICAS}))
    sim.run_for(0)
    return sim, devices.nodes["s"]


def using(name: str, curve: str, **behaviour: int) -> Doc:
    doc = pod(name, "", **behaviour)
    doc["metadata"]["annotations"][UTILISATION] = curve
    return doc


def assignments(node: GpuNode, at_us: int) -> dict[str, list[str]]:
    found = {
        each.pod: [node.device_id(grant.gpu, grant.unit) for grant in each.grants] for each in node.assignments(at_us)
    }
    return dict(sorted(found.items()))


def test_a_node_has_the_gpus_its_labels_tell_of_and_the_same_ones_under_its_name() -> None:
    sim, devices = world(nodes=0)
    pool = NodePool("pool", 1, 2, "Tesla-T4", memory_mib=15360)
    for name in ("a", "b"):
        sim.registry.create("nodes", gpu_node(name, pool, offered={GPU: 2}))
    before = devices.nodes["a"].gpus
    sim.registry.delete("nodes", ("", "a"))
    gone = "a" not in devices.nodes
    sim.registry.create("nodes", gpu_node("a", pool, offered={GPU: 2}))

    assert gone
    assert devices.nodes["a"].gpus == before
    assert [(gpu.index, gpu.model, gpu.memory >> 20, gpu.idle_power) for gpu in before] == [
        (0, "Tesla-T4", 15360, 10_000),
        (1, "Tesla-T4", 15360, 10_000),
    ]
    uuids = {gpu.uuid for node in devices.nodes.values() for gpu in node.gpus}
    assert len(uuids) == 4
    assert all(uuid.startswith("GPU-") for uuid in uuids)


def test_a_node_without_gpus_is_none_of_them() -> None:
    sim, devices = world(nodes=0)
    sim.registry.create("nodes", {"metadata": {"name": "plain"}, "status": {"capacity": {"cpu": "8"}}})

    assert devices.nodes == {}


def test_devices_are_given_at_the_binding_and_taken_back_when_containers_have_ended() -> None:
    sim, devices = world()
    node = devices.nodes["n0"]
    add(sim, pod("a", starts_after_us=seconds(30), stops_after_us=seconds(8)))
    sim.run_for(seconds(60))
    sim.registry.delete("pods", key("a"))
    sim.run_for(seconds(60))

    bound_us, ended_us = node.changes(START_US, sim.agenda.now_us)
    assert bound_us < START_US + SECOND_US
    assert ended_us == START_US + seconds(68)
    assert assignments(node, bound_us - 1) == assignments(node, ended_us) == {}
    assert assignments(node, bound_us) == assignments(node, ended_us - 1) == {"a": [node.gpus[0].uuid]}


def test_a_pod_that_failed_or_completed_gives_back_and_one_kept_for_its_logs_holds_nothing() -> None:
    sim, devices = world()
    add(sim, pod("a", lasts_us=seconds(10)), pod("b", lasts_us=seconds(10), fails=True))
    sim.run_for(seconds(60))

    assert assignments(devices.nodes["n0"], sim.agenda.now_us) == {}


def test_what_existed_before_is_taken_in() -> None:
    sim = Simulation(seed=1, start_us=START_US)
    furnish(sim, nodes=1, gpus=2)
    add(sim, pod("a"))
    sim.run_for(seconds(60))
    devices = Devices(sim.registry, seed=1)

    node = devices.nodes["n0"]
    assert assignments(node, sim.agenda.now_us) == {"a": [node.gpus[0].uuid]}
    assert next(iter(node.assignments(sim.agenda.now_us))).runs(sim.agenda.now_us)


def test_no_device_is_ever_given_twice() -> None:
    sim, devices = world(nodes=2, gpus=3)
    chance = Random(7)
    for index in range(60):
        lasts_us, gpus = seconds(chance.randint(1, 90)), chance.randint(1, 3)
        add(sim, pod(f"p{index}", chance.choice(("high", "low")), lasts_us=lasts_us, gpus=gpus))
        sim.run_for(seconds(chance.randint(1, 40)))
    sim.run_for(seconds(7200))

    for node in devices.nodes.values():
        changes = node.changes(START_US, sim.agenda.now_us)
        assert len(changes) > 20
        for at_us in changes:
            given = Counter(device for devices in assignments(node, at_us).values() for device in devices)
            assert set(given.values()) <= {1}
            assert set(given) <= node.device_ids()
    bound = [tenancy for node in devices.nodes.values() for tenancy in node._ended]
    assert len(bound) >= 60
    assert all(len(each.grants) == sum(each.wants.values()) for each in bound)


def test_who_finds_none_waits_for_the_next_that_is_free() -> None:
    sim, devices = world(gpus=1)
    for name in ("a", "b"):
        by_hand = pod(name, lasts_us=seconds(10))
        by_hand["spec"]["nodeName"] = "n0"
        add(sim, by_hand)
    node = devices.nodes["n0"]
    assert list(assignments(node, sim.agenda.now_us)) == ["a"]

    sim.registry.delete("pods", key("a"), grace_seconds=0)

    assert list(assignments(node, sim.agenda.now_us)) == ["b"]


def test_a_node_that_is_taken_away_takes_its_devices_along() -> None:
    sim, devices = world(gpus=1)
    add(sim, pod("a"))
    sim.run_for(seconds(5))
    sim.registry.delete("nodes", ("", "n0"))
    sim.run_for(seconds(120))

    assert devices.nodes == {}
    assert sim.store.get("pods", key("a")) is None


def test_replicas_are_packed_onto_as_few_gpus_as_can_be() -> None:
    sim, node = shared_world()
    for name, gpus in (("a", 3), ("b", 2), ("c", 1)):
        add(sim, pod(name, gpus=gpus))
        sim.run_for(seconds(1))

    first, second = (gpu.uuid for gpu in node.gpus)
    assert len(node.device_ids()) == 8
    assert assignments(node, sim.agenda.now_us) == {
        "a": [f"{first}::{unit}" for unit in (0, 1, 2)],
        "b": [f"{second}::{unit}" for unit in (0, 1)],
        "c": [f"{first}::3"],
    }


def test_a_node_of_gke_says_how_many_clients_share_a_gpu_and_names_devices_as_gke_does() -> None:
    sim, devices = world(nodes=0)
    pool = NodePool("pool", 1, 2, clients=4)
    sim.registry.create("nodes", gpu_node("s", pool, offered={GPU: 8}))
    sim.run_for(0)
    node = devices.nodes["s"]

    assert (len(node.gpus), node.units) == (2, 4)
    assert sorted(node.device_ids()) == [f"nvidia{gpu}/vgpu{unit}" for gpu in range(2) for unit in range(4)]


def test_a_gpu_is_idle_until_containers_run_and_then_as_busy_as_the_pod_says() -> None:
    sim, devices = world(gpus=1)
    add(sim, using("a", "0s:0.2,10m:0.9", starts_after_us=seconds(30), lasts_us=seconds(1200)))
    sim.run_for(seconds(1800))

    node, end_us = devices.nodes["n0"], sim.agenda.now_us
    bound_us, ended_us = node.changes(START_US, end_us)
    began_us = bound_us + seconds(30)
    assert [span for span in node.spans(0, START_US, end_us) if span[2]] == [
        (began_us, began_us + 10 * MINUTE_US, 200_000),
        (began_us + 10 * MINUTE_US, ended_us, 900_000),
    ]
    assert ended_us == began_us + seconds(1200)
    pieces = list(node.spans(0, START_US, end_us))
    assert [pieces[0][0], *(piece[1] for piece in pieces)] == [*(piece[0] for piece in pieces), end_us]


def test_energy_follows_utilisation_and_forgetting_does_not_change_it() -> None:
    sim, devices = world(gpus=2)
    add(sim, using("a", "0.5", lasts_us=seconds(100)))
    sim.run_for(seconds(300))

    node, now_us = devices.nodes["n0"], sim.agenda.now_us
    before = node.energy(0, now_us)
    node.forget(START_US + seconds(50))
    between = node.energy(0, now_us)
    node.forget(now_us)

    assert before == between == node.energy(0, now_us) == (55 * 300 + 345 * 50) * 1000
    assert node.energy(1, now_us) == 55 * 300 * 1000
    assert node.assignments(now_us) == node._ended == []


def test_who_shares_a_gpu_keeps_its_part_of_it_busy() -> None:
    sim, node = shared_world()
    add(sim, using("a", "0.8", gpus=2), using("b", "0.4"))
    sim.run_for(seconds(100))

    now_us = sim.agenda.now_us
    assert [busy for _, _, busy in node.spans(0, now_us - SECOND_US, now_us)] == [500_000]
    uses = node.uses(0, now_us - SECOND_US, now_us)
    assert sorted(use.busy for use in uses) == [100_000, 400_000]
    assert all(0 < use.memory < node.gpus[0].memory for use in uses)


def test_what_a_pod_does_not_say_is_drawn_for_it_and_the_same_in_every_run() -> None:
    runs = []
    for _ in range(2):
        sim, devices = world()
        add(sim, pod("a", gpus=2))
        sim.run_for(seconds(7200))
        node = devices.nodes[node_of(sim, "a")]
        runs.append([list(node.spans(index, START_US, sim.agenda.now_us)) for index in range(2)])

    assert runs[0] == runs[1]
    assert all(0 <= busy <= FULL for _, _, busy in runs[0][0])


def test_pods_that_ask_for_none_hold_none() -> None:
    sim, devices = world()
    add(sim, pod("a", gpus=0))
    sim.run_for(seconds(5))

    assert node_of(sim, "a") == "n0"
    assert devices.nodes["n0"].assignments(sim.agenda.now_us) == []
    assert devices.nodes["n0"].changes(START_US, sim.agenda.now_us) == []

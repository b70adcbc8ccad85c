from gputally_sim.control.daemons import Daemons
from gputally_sim.documents import Doc
from gputally_sim.simulation import Simulation
from tests.unit.sim.world import START_US, furnish, node, seconds

LABELS = {"app": "agent"}


def world() -> Simulation:
    sim = Simulation(seed=1, start_us=START_US)
    Daemons(sim.registry, name="agent", namespace="agents", labels=LABELS)
    furnish(sim, nodes=2)
    return sim


def daemons(sim: Simulation) -> dict[str, Doc]:
    return {pod["status"]["podIP"]: pod for pod in sim.store.docs("pods") if pod["metadata"]["namespace"] == "agents"}


def test_there_is_one_on_every_node_with_gpus_at_an_address_of_its_own() -> None:
    sim = world()
    sim.registry.create("nodes", {"metadata": {"name": "plain"}, "status": {"capacity": {"cpu": "8"}}})
    sim.run_for(seconds(1))

    found = daemons(sim)
    assert {address: pod["spec"]["nodeName"] for address, pod in found.items()} == {
        "127.64.0.1": "n0",
        "127.64.0.2": "n1",
    }
    assert {pod["status"]["phase"] for pod in found.values()} == {"Running"}
    assert all(pod["metadata"]["labels"] == LABELS for pod in found.values())


def test_it_goes_with_its_node_and_the_next_of_that_name_has_another() -> None:
    sim = world()
    sim.run_for(seconds(1))
    sim.registry.delete("nodes", ("", "n0"))
    sim.run_for(seconds(60))
    assert {pod["spec"]["nodeName"] for pod in daemons(sim).values()} == {"n1"}

    sim.registry.create("nodes", node("n0"))
    sim.run_for(seconds(1))

    assert {address: pod["spec"]["nodeName"] for address, pod in daemons(sim).items()} == {
        "127.64.0.2": "n1",
        "127.64.0.3": "n0",
    }


def test_a_node_that_is_gone_at_once_has_none() -> None:
    sim = world()
    sim.registry.create("nodes", node("brief"))
    sim.registry.delete("nodes", ("", "brief"))
    sim.run_for(seconds(1))

    assert len(daemons(sim)) == 2

"""A small simulated cluster for tests, and shorthand for the objects in it."""

from typing import Any

from gputally_sim.api.store import Change
from gputally_sim.documents import Doc, Key
from gputally_sim.instants import SECOND_US, parse_instant
from gputally_sim.node.pods import GPU
from gputally_sim.scenarios import workloads
from gputally_sim.scenarios.workloads import Work
from gputally_sim.simulation import Simulation

START_US = parse_instant("2026-03-02T06:00:00Z")
CLASSES = {"high": 1000, "medium": 500, "low": 100}
NAMESPACE = "team"


def small_world(*, nodes: int = 2, gpus: int = 1) -> Simulation:
    world = Simulation(seed=1, start_us=START_US)
    furnish(world, nodes=nodes, gpus=gpus)
    return world


def furnish(world: Simulation, *, nodes: int = 2, gpus: int = 1) -> None:
    """Priority classes high, medium, low and the modest one that never preempts; a namespace; nodes n0, n1, ..."""
    for name, value in CLASSES.items():
        world.registry.create("priorityclasses", workloads.priority_class(name, value))
    world.registry.create("priorityclasses", workloads.priority_class("modest", 800, preempts=False))
    world.registry.create("namespaces", workloads.namespace(NAMESPACE, "team"))
    for index in range(nodes):
        world.registry.create("nodes", node(f"n{index}", gpus))
    world.run_for(0)


def node(name: str, gpus: int = 1) -> Doc:
    offered = {"cpu": "96", GPU: str(gpus)}
    status = {"capacity": offered, "allocatable": offered, "nodeInfo": {"systemUUID": f"machine-{name}"}}
    return {"metadata": {"name": name}, "status": status}


def pod(name: str, tier: str = "", **behaviour: Any) -> Doc:  # noqa: ANN401 - the fields of Work
    return workloads.bare_pod(Work(app=name, kind="test", tier=tier, **behaviour), name)


def add(world: Simulation, *pods: Doc) -> None:
    for each in pods:
        world.registry.create("pods", each, NAMESPACE)


def key(name: str) -> Key:
    return NAMESPACE, name


def read(world: Simulation, name: str, plural: str = "pods") -> Doc:
    return world.registry.read(plural, key(name)).doc


def exists(world: Simulation, name: str) -> bool:
    return world.store.get("pods", key(name)) is not None


def node_of(world: Simulation, name: str) -> str:
    bound: str = read(world, name)["spec"].get("nodeName", "")
    return bound


def condition(doc: Doc, kind: str) -> Doc:
    return next(each for each in doc["status"]["conditions"] if each["type"] == kind)


def recorded(world: Simulation, *plurals: str) -> list[Change]:
    """Every change from now on, in order."""
    changes: list[Change] = []
    for plural in plurals:
        world.store.subscribe(plural, changes.append)
    return changes


def seconds(count: float) -> int:
    return int(count * SECOND_US)

from gputally_sim.simulation import Simulation
from gputally_sim.trace.free_capacity import FreeCapacity, Kind
from tests.unit.sim.world import START_US, node

WHOLE = Kind("nvidia.com/gpu", "A")
OTHER = Kind("nvidia.com/gpu", "B")
PARTS = Kind("example.com/gpu-milli", "A")


def furnished(**nodes: tuple[Kind, int]) -> tuple[Simulation, FreeCapacity]:
    world = Simulation(seed=1, start_us=START_US)
    room = FreeCapacity(world.store)
    for name, (kind, units) in nodes.items():
        world.registry.create("nodes", node(name, units))
        room.add(name, kind, units)
    world.run_for(0)
    return world, room


def test_the_node_that_is_left_with_the_least_is_found() -> None:
    _, room = furnished(big=(WHOLE, 8), small=(WHOLE, 2), other=(OTHER, 1))

    assert room.find(WHOLE.resource, 2, ()) == "small"
    assert room.find(WHOLE.resource, 1, ()) == "other"
    assert room.find(WHOLE.resource, 1, ("A",)) == "small"
    assert room.find(WHOLE.resource, 3, ("A", "B")) == "big"


def test_a_node_offers_one_resource_alone() -> None:
    _, room = furnished(parts=(PARTS, 8000))

    assert room.find(WHOLE.resource, 1, ()) == ""
    assert room.find(PARTS.resource, 8000, ()) == "parts"


def test_what_is_taken_is_not_found_until_it_is_free_again() -> None:
    _, room = furnished(only=(WHOLE, 4))

    room.take("only", 3)
    assert [room.find(WHOLE.resource, units, ()) for units in (1, 2)] == ["only", ""]

    room.take("only", -3)
    assert room.find(WHOLE.resource, 4, ()) == "only"


def test_nodes_that_are_cordoned_lost_or_gone_are_not_found() -> None:
    world, room = furnished(only=(WHOLE, 1))

    def found() -> bool:
        return room.find(WHOLE.resource, 1, ()) == "only"

    world.nodes.cordon("only")
    cordoned = found()
    world.nodes.cordon("only", unschedulable=False)
    back = found()
    world.nodes.mark_unknown("only")
    lost = found()
    world.nodes.mark_ready("only")
    ready = found()
    world.nodes.delete("only")

    assert (cordoned, back, lost, ready, found()) == (False, True, False, True, False)


def test_what_ends_on_a_node_out_of_reach_is_free_when_it_is_back() -> None:
    world, room = furnished(only=(WHOLE, 1))
    room.take("only", 1)

    world.nodes.mark_unknown("only")
    room.take("only", -1)
    assert room.find(WHOLE.resource, 1, ()) == ""

    world.nodes.mark_ready("only")
    assert room.find(WHOLE.resource, 1, ()) == "only"

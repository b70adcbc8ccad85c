"""Gangs that wait for each other."""

import pytest

from gputally.placement.deadlocks import GangDemand, deadlocks, served_by, stuck
from tests.unit.placement.cluster import needs, place, room, taken


def test_a_gang_that_fits_now_is_not_stuck() -> None:
    nodes = room(place(gpu=4), a0=("n1", taken(gpu=2)))
    gangs = {
        "fits": GangDemand(((needs(gpu=1), 2),), [("n1", "a0")]),
        "waits": GangDemand(((needs(gpu=1), 3),), []),
    }

    assert stuck(gangs, nodes).keys() == {"waits"}


def test_gangs_serve_those_that_fit_without_them_and_the_room_is_as_before() -> None:
    nodes = room(place(gpu=4), a0=("n1", taken(gpu=2)), b0=("n1", taken(gpu=2)))
    gangs = {
        "a": GangDemand(((needs(gpu=1), 2),), [("n1", "a0")]),
        "b": GangDemand(((needs(gpu=2), 1),), [("n1", "b0")]),
        "large": GangDemand(((needs(gpu=4), 1),), []),
    }
    before = dict(nodes.nodes["n1"].free)
    assert stuck(gangs, nodes) == gangs

    assert served_by("a", gangs, nodes) == {"b"}
    assert served_by("b", gangs, nodes) == {"a"}
    assert served_by("large", gangs, nodes) == frozenset()
    assert (nodes.nodes["n1"].free, set(nodes.nodes["n1"].taken)) == (before, {"a0", "b0"})


@pytest.mark.parametrize(
    ("serves", "found"),
    [
        ({"a": ["b"], "b": ["a"]}, [("a", "b")]),
        ({"a": ["b"], "b": ["c"], "c": ["a"]}, [("a", "b", "c")]),
        ({"a": ["b"], "b": []}, []),
        ({"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"]}, [("a", "b"), ("c", "d")]),
        ({"a": ["b"], "b": ["a"], "c": ["a"]}, [("a", "b")]),
        ({"a": ["gone"]}, []),
    ],
)
def test_gangs_on_a_circle_wait_for_each_other(serves: dict[str, list[str]], found: list[tuple[str, ...]]) -> None:
    assert deadlocks(serves) == found

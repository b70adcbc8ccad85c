"""Pods that wait take the places that the scheduler would give them."""

import pytest

from gputally.placement.what_if import seat, seat_nominated
from tests.unit.placement.cluster import needs, place, room, taken


def test_pods_take_what_is_free_and_preempt_for_the_rest() -> None:
    found = room(place("n1", gpu=2), place("n2", gpu=2), low=("n2", taken(gpu=2, priority=1)))

    assert seat(needs(gpu=2), found, 3, key="x ") == 2
    assert found.nodes["n1"].free["nvidia.com/gpu"] == found.nodes["n2"].free["nvidia.com/gpu"] == 0
    assert set(found.nodes["n2"].taken) == {"x 0 evicting"}


def test_only_so_many_preemptions_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gputally.placement.what_if.MOST_EVICTIONS", 1)
    found = room(place(gpu=2), a=("n1", taken(priority=1)), b=("n1", taken(priority=1)))

    assert seat(needs(gpu=1), found, 2, key="x ") == 1


def test_a_nominated_pod_takes_its_node_from_those_that_stop_there() -> None:
    found = room(place("n1", gpu=1), place("n2", gpu=1), low=("n1", taken(priority=1)), lower=("n2", taken(priority=0)))
    found.nominate("n1", "first", taken(priority=100))

    assert seat_nominated(needs(), found, "first", "n1", key="x ")
    assert set(found.nodes["n1"].taken) == {"x nominated first"}
    assert not found.nodes["n1"].nominated
    assert set(found.nodes["n2"].taken) == {"lower"}


def test_a_nomination_ends_where_the_pod_does_not_fit_any_more() -> None:
    found = room(place(gpu=1), high=("n1", taken(priority=900)))
    found.nominate("n1", "first", taken(priority=100))

    assert not seat_nominated(needs(), found, "first", "n1", key="x ")
    assert not seat_nominated(needs(), found, "first", "gone", key="x ")
    assert not found.nodes["n1"].nominated

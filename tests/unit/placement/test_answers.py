"""What anyone may write costs little: few nodes are looked at, and little is kept."""

import gc

import pytest

from gputally.model.kube.pods import LabelRequirement, NodeSelectorTerm
from gputally.model.needs import Needs
from gputally.model.verdicts import Reason
from gputally.placement import answer_cache
from gputally.placement.candidates import accepts, candidates_for
from gputally.placement.room import Room
from gputally.placement.verdicts import judged
from tests.unit.placement.cluster import needs, place, room, taken

NODES = 300
HOST = "kubernetes.io/hostname"


def large_room() -> Room:
    """Each node has a label of its own besides its host name, which is not its name."""
    places = [place(f"n{number}", labels=((HOST, f"host{number}"), ("serial", str(number)))) for number in range(NODES)]
    return room(*places, **{f"p{number}": (f"n{number}", taken(gpu=8)) for number in range(NODES)})


def selecting(**labels: str) -> Needs:
    named = {"host": HOST}
    return needs(node_selector=tuple(sorted((named.get(key, key), value) for key, value in labels.items())))


def looks(found: Room, waiting: Needs) -> int:
    before = found.answers.looked_at
    judged(waiting, found)
    return found.answers.looked_at - before


def test_a_pod_that_names_its_node_looks_at_no_other() -> None:
    found = large_room()
    looks(found, selecting(host="host0"))

    assert [len(each.nodes) for each in candidates_for(selecting(host="host7"), found).accepting] == [1]
    assert looks(found, selecting(host="host7")) < NODES / 4
    assert judged(selecting(host="host7"), found).reason is Reason.CAPACITY


def test_label_keys_that_no_node_has_do_not_group_the_nodes_anew() -> None:
    found = large_room()
    looks(found, selecting(made_up="x"))

    assert all(looks(found, selecting(**{f"made_up_{number}": "x"})) < NODES for number in range(5))


def test_a_pod_may_avoid_nodes_by_name() -> None:
    found = large_room()
    avoids = LabelRequirement(key=HOST, operator="NotIn", values=("host3", "host4", "another"))
    field = LabelRequirement(key="metadata.name", operator="NotIn", values=("n5",))
    pod = needs(node_terms=(NodeSelectorTerm(match_expressions=(avoids,), match_fields=(field,)),))

    accepting, excluding = candidates_for(pod, found)
    assert [len(each.nodes) for each in accepting] == [NODES - 3]
    assert {name for _, each in excluding for name in each.nodes} == {"n3", "n4", "n5"}
    assert not accepts(pod, found, "n3")
    assert accepts(pod, found, "n6")
    assert dict(judged(pod, found).counts) == {"selector": 3, "resource": NODES - 3}


def test_answers_go_with_the_needs() -> None:
    found = large_room()
    pod = selecting(serial="0")
    candidates_for(pod, found)
    kept = found.answers.kept
    del pod
    candidates_for(needs(), found)
    gc.collect()

    assert kept > NODES * 100
    assert found.answers.kept < 1000


def test_no_more_than_so_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_cache, "MOST_KEPT", 100_000)
    found = large_room()
    pods = [selecting(serial=str(number)) for number in range(20)]
    for pod in pods:
        judged(pod, found)
        assert found.answers.kept <= 100_000
    assert {judged(pod, found).reason for pod in pods} == {Reason.CAPACITY}

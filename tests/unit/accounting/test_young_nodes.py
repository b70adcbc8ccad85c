"""Of which nodes pods are kept before these have GPUs, and of which earlier pods may be missing."""

import pytest

from gputally.accounting.waiting import live_room
from gputally.accounting.waiting.live_room import YOUNG_US, YoungNodes


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_room, "MOST_NODES", 2)
    monkeypatch.setattr(live_room, "MOST_UNKNOWN", 1)


def has_all(young: YoungNodes, name: str, *, at_us: int, created_us: int = 0) -> bool:
    return young.has_all(name, until_us=created_us + YOUNG_US, at_us=at_us)


def test_names_that_only_pods_tell_of_and_nodes_have_limits_of_their_own() -> None:
    young = YoungNodes()

    assert [young.pod_seen(name, at_us=1) for name in ("made-up-1", "made-up-2", "made-up-1")] == [True, False, True]
    for name in ("n1", "n2", "n3"):
        young.node_seen(name, until_us=YOUNG_US, at_us=1)

    assert [name in young for name in ("n1", "n2", "n3")] == [True, True, False]
    assert [YoungNodes().pod_seen(name, at_us=1) for name in ("a", "b")] == [True, True]


def test_a_node_that_comes_with_its_gpus_has_all_its_pods_unless_one_may_have_been_refused() -> None:
    young = YoungNodes()
    young.pod_seen("n1", at_us=1)
    assert has_all(young, "n1", at_us=2)
    assert has_all(young, "n2", at_us=2)

    young.pod_seen("n2", at_us=3)

    assert has_all(young, "n1", at_us=4)  # it was kept before
    assert not has_all(young, "n2", at_us=4)
    assert has_all(young, "n3", at_us=3 + YOUNG_US, created_us=YOUNG_US)


def test_a_node_that_was_refused_before_it_was_kept_may_lack_pods() -> None:
    young = YoungNodes()
    young.pod_seen("n1", at_us=1)
    young.pod_seen("n2", at_us=2)
    young.forget("n1")

    assert young.pod_seen("n2", at_us=3)
    assert not has_all(young, "n2", at_us=4)


def test_a_node_that_gets_gpus_when_it_is_old_may_lack_pods() -> None:
    young = YoungNodes()
    young.node_seen("n1", until_us=YOUNG_US, at_us=1)
    assert young.end(YOUNG_US - 1) == []

    assert young.end(YOUNG_US) == ["n1"]
    assert "n1" not in young
    assert not has_all(young, "n1", at_us=YOUNG_US)

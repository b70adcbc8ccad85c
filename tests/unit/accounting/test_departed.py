"""Pods that left are remembered for as long as an agent may tell of them."""

import pytest
from msgspec.structs import replace

from gputally.accounting.pods.deleted import Departed
from gputally.model.units import US_PER_HOUR, US_PER_SECOND
from tests.contract.records import pod, segment, us
from tests.core import manifests
from tests.core.manifests import NodeForm, PodForm
from tests.core.replay import Replay

A, B = pod("a", segment(10, 20)), pod("b", segment(10, 20))

POD = PodForm(created=1, node="n1", scheduled=2, started=2, gpus=4)


def uids(departed: Departed) -> list[str]:
    return [record.uid for record in departed.on_node("n1")]


def test_a_pod_that_left_is_found_by_uid_and_by_node() -> None:
    departed = Departed()
    departed.add(A, at_us=us(20))

    assert departed.get("a") == replace(A, remembered_us=us(20))
    assert departed.get("b") is None
    assert uids(departed) == ["a"]
    assert list(departed.on_node("n2")) == []


def test_once_the_agent_has_told_of_later_times_those_it_does_not_name_are_forgotten() -> None:
    departed = Departed()
    departed.add(A, at_us=us(20))
    departed.add(B, at_us=us(20))

    departed.forget("n1", reported_us=us(79), needed=["b"])
    assert uids(departed) == ["a", "b"]
    departed.forget("n1", reported_us=us(81), needed=["b"])
    assert uids(departed) == ["b"]
    departed.forget("n1", reported_us=us(81), needed=[])
    departed.forget("n1", reported_us=us(82), needed=[])
    assert uids(departed) == []


def test_without_word_from_its_agent_a_pod_is_remembered_for_a_day() -> None:
    departed = Departed()
    departed.add(A, at_us=us(20))
    departed.add(B, at_us=us(30))

    departed.advance(us(20) + 24 * US_PER_HOUR)
    assert uids(departed) == ["a", "b"]
    departed.advance(us(20) + 24 * US_PER_HOUR + US_PER_SECOND)
    assert uids(departed) == ["b"]


def test_what_changed_is_told_once_for_the_ledger() -> None:
    departed = Departed()
    departed.restore(A, agent=True, labels=False)
    departed.add(B, at_us=us(20))
    assert departed.drain() == {"b": replace(B, remembered_us=us(20))}
    assert departed.drain() == {}

    departed.forget("n1", reported_us=us(100), needed=["b"])
    assert departed.drain() == {"a": None}


def test_a_pod_of_whose_node_nothing_is_told_is_remembered_for_an_hour_or_until_its_labels_come() -> None:
    departed = Departed()
    departed.add(A, at_us=us(20), agent=False, labels=True)
    departed.add(B, at_us=us(30), agent=True, labels=True)
    departed.add(pod("c", segment(10, 20)), at_us=us(30), agent=False)

    departed.forget("n1", reported_us=us(200), needed=[])
    departed.advance(us(20) + US_PER_HOUR)
    assert uids(departed) == ["a", "b"]
    departed.advance(us(20) + US_PER_HOUR + US_PER_SECOND)
    assert uids(departed) == ["b"]
    departed.described("n1", lambda record: record.uid == "c")
    assert uids(departed) == ["b"]
    departed.described("n1", lambda _: True)
    assert uids(departed) == []


def test_of_pods_that_wait_for_labels_the_last_ones_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gputally.accounting.pods.deleted._MAX_UNDESCRIBED", 1)
    departed = Departed()
    departed.add(A, at_us=us(20), agent=False, labels=True)
    departed.add(B, at_us=us(30), agent=False, labels=True)

    assert uids(departed) == ["b"]


def test_over_a_restart_a_pod_is_remembered_for_the_reasons_and_the_time_it_was() -> None:
    earlier, departed = Departed(), Departed()
    earlier.add(A, at_us=us(20), agent=False, labels=True)
    earlier.add(B, at_us=us(30), agent=True)
    earlier.add(pod("c", segment(10, 20)), at_us=us(40), agent=True)
    for uid, agent, labels in (("a", False, True), ("b", True, False), ("c", False, False)):
        record = earlier.get(uid)
        assert record
        departed.restore(record, agent=agent, labels=labels)

    assert uids(departed) == ["a", "b"]
    assert departed.drain() == {"c": None}
    departed.advance(us(20) + US_PER_HOUR + US_PER_SECOND)
    assert uids(departed) == ["b"]
    departed.advance(us(30) + 24 * US_PER_HOUR + US_PER_SECOND)
    assert uids(departed) == []


def test_daily_restarts_heap_no_pods_of_nodes_without_agents_and_labels() -> None:
    replay = Replay()
    replay.see(NodeForm(gpus=8), at=1)
    for day in range(3):
        created = 2 + day * 86_400
        gone = PodForm(name=f"p{day}", created=created, node="n1", scheduled=created, started=created)
        replay.see(gone, at=created)
        replay.lose(gone, at=created + 10)
        replay.flush()
        assert sorted(replay.memory.departed) == [f"uid-p{day}"]
        replay.restart()


def test_a_restart_in_between_does_not_make_an_hour_longer() -> None:
    replay = Replay()
    replay.see(NodeForm(gpus=8), POD, at=2)
    replay.lose(POD, at=42)
    replay.fleet.advance(manifests.us(3000))
    replay.flush()
    replay.restart()
    replay.fleet.advance(manifests.us(3700))
    replay.flush()

    assert not replay.memory.departed

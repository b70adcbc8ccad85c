"""Pods that left are remembered for as long as an agent may tell of them."""

import pytest

from gputally.accounting.departed import Departed
from gputally.model.units import US_PER_HOUR, US_PER_SECOND
from tests.contract.records import pod, segment, us

A, B = pod("a", segment(10, 20)), pod("b", segment(10, 20))


def uids(departed: Departed) -> list[str]:
    return [record.uid for record in departed.on_node("n1")]


def test_a_pod_that_left_is_found_by_uid_and_by_node() -> None:
    departed = Departed()
    departed.add(A, at_us=us(20))

    assert departed.get("a") == A
    assert departed.get("b") is None
    assert uids(departed) == ["a"]
    assert list(departed.on_node("n2")) == []


def test_once_the_agent_has_told_of_later_times_those_it_does_not_name_are_forgotten() -> None:
    departed = Departed()
    departed.add(A, at_us=us(20))
    departed.add(B, at_us=us(20))

    departed.forget("n1", told_us=us(79), needed=["b"])
    assert uids(departed) == ["a", "b"]
    departed.forget("n1", told_us=us(81), needed=["b"])
    assert uids(departed) == ["b"]
    departed.forget("n1", told_us=us(81), needed=[])
    departed.forget("n1", told_us=us(82), needed=[])
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
    departed.restore(A, at_us=us(20))
    departed.add(B, at_us=us(20))
    assert departed.drain() == {"b": B}
    assert departed.drain() == {}

    departed.forget("n1", told_us=us(100), needed=["b"])
    assert departed.drain() == {"a": None}


def test_a_pod_of_whose_node_nothing_is_told_is_remembered_for_an_hour_or_until_its_labels_come() -> None:
    departed = Departed()
    departed.add(A, at_us=us(20), agent=False, labels=True)
    departed.add(B, at_us=us(30), agent=True, labels=True)
    departed.add(pod("c", segment(10, 20)), at_us=us(30), agent=False)

    departed.forget("n1", told_us=us(200), needed=[])
    departed.advance(us(20) + US_PER_HOUR)
    assert uids(departed) == ["a", "b"]
    departed.advance(us(20) + US_PER_HOUR + US_PER_SECOND)
    assert uids(departed) == ["b"]
    departed.described("n1")
    assert uids(departed) == []


def test_of_pods_that_wait_for_labels_the_last_ones_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gputally.accounting.departed._MOST_UNDESCRIBED", 1)
    departed = Departed()
    departed.add(A, at_us=us(20), agent=False, labels=True)
    departed.add(B, at_us=us(30), agent=False, labels=True)

    assert uids(departed) == ["b"]

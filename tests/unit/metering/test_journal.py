"""What ended is told until it was heard, and not for ever."""

import pytest

from gputally.metering.device_accounts import DeviceAccounts
from gputally.model.units import US_PER_HOUR
from tests.unit.metering.readings import (
    allocations,
    assignment,
    held,
    part,
    reading,
    report,
    seconds,
    span,
    totals,
    us,
)


@pytest.fixture
def books() -> DeviceAccounts:
    """One GPU; `a` held it from 0 to 5, of which nothing is told after 4 yet."""
    books = DeviceAccounts()
    books.allocated(allocations(0, held()))
    books.read(reading(0, part()))
    books.allocated(allocations(5))
    books.read(reading(5.5, part(span(0, 4, 1))))
    return books


def exported(books: DeviceAccounts, at: float) -> list[str]:
    return [each.pod for each in books.snapshot(us(at)).assignments]


def test_what_ended_goes_on_to_grow_by_what_is_told_late(books: DeviceAccounts) -> None:
    books.read(reading(6, part(span(4, 6, 1))))

    assert (exported(books, 7), seconds(totals(books, "a", 7).used)) == (["a"], 5)
    assert seconds(assignment(books, "a", 7).hours[0].used) == 5


def test_what_ended_is_exported_for_ten_minutes(books: DeviceAccounts) -> None:
    assert exported(books, 604) == ["a"]
    assert exported(books, 605) == []


def test_a_pod_of_the_same_name_goes_on_with_the_same_totals(books: DeviceAccounts) -> None:
    books.allocated(allocations(7, held()))
    books.read(reading(9, part(span(4, 9, 1))))

    assert exported(books, 9) == ["a"]
    assert seconds(totals(books, "a", 9).used) == 7
    hours = [each.hours[0].used for each in report(books, 9).assignments]
    assert [seconds(used) for used in hours] == [5, 2]
    assert totals(books, "a", 9).share == 1_000_000


def test_what_ended_has_no_share_and_no_memory() -> None:
    books = DeviceAccounts()
    books.allocated(allocations(0, held()))
    books.read(reading(0, part()))
    books.read(reading(1, part(memory_used=5)))
    assert totals(books, "a", 1).memory_now == 5

    books.allocated(allocations(2))
    books.read(reading(3, part(memory_used=5)))

    found = totals(books, "a", 3)
    assert (found.is_held, found.share, found.memory_now, found.memory_us) == (False, 0, None, 2_000_000)


def test_what_ended_is_reported_for_the_length_of_the_journal(books: DeviceAccounts) -> None:
    journal_s = 6 * 3600

    assert [each.pod for each in report(books, journal_s + 4).assignments] == ["a"]
    assert report(books, journal_s + 5).assignments == ()


def test_hours_older_than_the_journal_are_left_out() -> None:
    books = DeviceAccounts(journal_us=US_PER_HOUR)
    books.allocated(allocations(0))
    books.read(reading(0, part()))
    for at in range(5, 7200, 5):
        books.allocated(allocations(at, held("a")))
        books.read(reading(at, part(span(at - 5, at, 1))))

    told = report(books, 7200)
    assert [hour.start_us for hour in told.assignments[0].hours] == [us(1800), us(5400)]
    assert [hour.start_us for hour in told.gpus[0].hours] == []


def test_of_too_many_holders_those_that_ended_longest_ago_go_and_are_counted() -> None:
    books = DeviceAccounts(max_assignments=3)
    for at, pod in enumerate("abcde"):
        books.allocated(allocations(at, held("x"), held(pod)))

    assert [each.pod for each in report(books, 5).assignments] == ["d", "x", "e"]
    assert sorted(exported(books, 5)) == ["d", "e", "x"]
    assert books.snapshot(us(5)).dropped == 3


def test_who_is_there_is_never_left_out() -> None:
    books = DeviceAccounts(max_assignments=1)
    books.allocated(allocations(0, held("a"), held("b"), held("c")))
    books.allocated(allocations(1, held("a"), held("b")))

    assert [each.pod for each in report(books, 1).assignments] == ["a", "b"]

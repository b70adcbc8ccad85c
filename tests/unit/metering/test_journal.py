"""What ended is told until it was heard, and not for ever."""

import pytest
from msgspec.structs import replace

from gputally.metering.device_accounts import DeviceAccounts
from gputally.model.units import US_PER_HOUR
from gputally.model.usage import UsageCursor, UsageReport
from tests.unit.metering.readings import (
    NEXT_HOUR,
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


def since(books: DeviceAccounts, revision: int, at: float, *, epoch: str = "e1") -> UsageReport:
    return books.report(us(at), "n1", "e1", cursor=UsageCursor(epoch, revision))


def test_a_reader_gets_what_changed_since_its_last_report() -> None:
    books = DeviceAccounts()
    books.allocated(allocations(0, held("a"), held("b", part="GPU-1")))
    books.read(reading(0, part(), energy=1000))
    books.read(reading(0, part(uuid="GPU-1"), gpu="GPU-1"))
    for at in range(5, NEXT_HOUR + 10, 5):
        books.allocated(allocations(at, *[held("a")] * (at < NEXT_HOUR), held("b", part="GPU-1")))
    books.read(reading(NEXT_HOUR + 5, part(span(0, NEXT_HOUR, 1)), energy=1100))
    first = report(books, NEXT_HOUR + 6)
    assert [(each.pod, len(each.hours)) for each in first.assignments] == [("a", 1), ("b", 0)]
    assert [len(each.hours) for each in first.gpus] == [1, 0]

    later = since(books, first.revision, NEXT_HOUR + 7)
    assert (later.since, later.revision) == (first.revision, first.revision)
    assert [(each.pod, each.hours) for each in later.assignments] == [("b", ())], "the ended one has not changed"
    assert [(each.uuid, each.hours) for each in later.gpus] == [("GPU-0", ()), ("GPU-1", ())]

    books.read(reading(NEXT_HOUR + 8, part(span(NEXT_HOUR, NEXT_HOUR + 8, 1), uuid="GPU-1"), gpu="GPU-1"))
    latest = since(books, first.revision, NEXT_HOUR + 9)
    assert latest.revision == first.revision + 1
    [changed] = latest.assignments
    assert (changed.pod, [hour.start_us for hour in changed.hours]) == ("b", [us(NEXT_HOUR)])
    whole = report(books, NEXT_HOUR + 9)
    gpus = (first.gpus[0], latest.gpus[1])
    assert whole == replace(latest, since=0, gpus=gpus, assignments=(first.assignments[0], changed))


def test_a_report_that_was_lost_is_told_again_and_readers_do_not_disturb_each_other(books: DeviceAccounts) -> None:
    first = report(books, 6)
    books.read(reading(7, part(span(4, 6, 1))))
    told = [since(books, first.revision, 8) for _ in range(3)]

    assert told[0] == told[1] == told[2]
    assert [seconds(each.hours[0].used) for each in told[0].assignments] == [5]
    assert since(books, told[0].revision, 8).assignments == ()


def test_the_end_of_an_assignment_is_a_change(books: DeviceAccounts) -> None:
    books.allocated(allocations(10, held("c")))
    first = report(books, 11)
    books.allocated(allocations(12))

    assert [(each.pod, each.until_us) for each in since(books, first.revision, 13).assignments] == [("c", us(12))]


@pytest.mark.parametrize(("epoch", "more"), [("e0", 0), ("e1", 1), ("", 0)])
def test_who_has_no_report_of_this_epoch_gets_everything(books: DeviceAccounts, epoch: str, more: int) -> None:
    whole = report(books, 6)

    assert since(books, whole.revision + more, 6, epoch=epoch) == whole
    assert whole.since == 0


def test_who_cannot_know_that_an_assignment_was_dropped_gets_everything() -> None:
    books = DeviceAccounts(max_assignments=1)
    books.allocated(allocations(0, held("a")))
    before = report(books, 0)
    books.allocated(allocations(1, held("b")))
    told = since(books, before.revision, 1)

    assert books.snapshot(us(1)).dropped == 1
    assert (told.since, [each.pod for each in told.assignments]) == (0, ["b"])
    assert since(books, told.revision, 1).since == told.revision


def test_what_is_older_than_the_journal_is_in_no_report_of_a_gpu_that_is_not_read_any_more() -> None:
    books = DeviceAccounts(journal_us=US_PER_HOUR)
    books.allocated(allocations(0, held()))
    books.read(reading(0, part()))
    books.read(reading(5, part(span(0, 5, 1))))

    assert [len(each.hours) for each in report(books, NEXT_HOUR + 3599).assignments] == [1]
    told = report(books, NEXT_HOUR + 3600)
    assert [each.hours for each in told.assignments] == [()]
    assert told.journal_start_us == us(NEXT_HOUR)

"""A container holds a part from the poll that first lists it to the poll that first does not."""

from gputally.metering.timeline import Timeline
from gputally.model.devices import PartAllocations
from gputally.model.units import US_PER_SECOND
from tests.unit.metering.readings import NEXT_HOUR, START_US, allocations, held, us

Spans = list[tuple[float, float, list[str] | None]]
"""From and to in seconds, and the pods; None where nobody knows."""


def told(*polls: PartAllocations) -> Timeline:
    timeline = Timeline(valid_us=10 * US_PER_SECOND)
    for poll in polls:
        timeline.allocated(poll)
    return timeline


def intervals(timeline: Timeline, from_s: float, to_s: float, part: str = "GPU-0") -> Spans:
    found: Spans = []
    for from_us, to_us, period in timeline.intervals(part, us(from_s), us(to_s)):
        pods = None if period is None else [each.allocation.pod for each in period.assignments]
        found.append(((from_us - START_US) / 1e6, (to_us - START_US) / 1e6, pods))
    return found


def test_time_is_cut_where_holders_change() -> None:
    timeline = told(allocations(0), allocations(5, held("a")), allocations(9, held("a"), held("b")), allocations(12))

    assert intervals(timeline, 1, 20) == [(1, 5, []), (5, 9, ["a"]), (9, 12, ["a", "b"]), (12, 20, [])]
    assert intervals(timeline, 1, 20, part="GPU-1") == [(1, 20, [])]
    assert intervals(timeline, 6, 7) == [(6, 7, ["a"])]
    assert intervals(timeline, 7, 7) == []


def test_time_is_cut_at_the_hour() -> None:
    timeline = told(allocations(NEXT_HOUR - 5, held("a")))

    assert intervals(timeline, NEXT_HOUR - 2, NEXT_HOUR + 3) == [
        (NEXT_HOUR - 2, NEXT_HOUR, ["a"]),
        (NEXT_HOUR, NEXT_HOUR + 3, ["a"]),
    ]


def test_nobody_knows_who_held_a_part_before_the_first_poll_and_long_after_the_last() -> None:
    assert intervals(told(), 0, 5) == [(0, 5, None)]
    assert intervals(told(allocations(3, held("a"))), 0, 20) == [(0, 3, None), (3, 13, ["a"]), (13, 20, None)]


def test_after_an_outage_it_is_known_again_and_who_is_still_there_held_on() -> None:
    timeline = told(allocations(0, held("a")), allocations(30, held("a")))

    assert intervals(timeline, 5, 35) == [(5, 10, ["a"]), (10, 30, None), (30, 35, ["a"])]
    assert [each.since_us for each in timeline.present.values()] == [us(0)]
    assert intervals(timeline, 30, 35) == [(30, 35, ["a"])]


def test_what_was_more_than_ten_minutes_before_the_last_poll_is_known_no_more() -> None:
    timeline = told(*[allocations(at, held("a")) for at in range(0, 700, 5)])

    assert intervals(timeline, 80, 100) == [(80, 95, None), (95, 100, ["a"])]


def test_a_holder_knows_the_polls_around_its_beginning_and_its_end() -> None:
    timeline = told(allocations(0), allocations(5, held("a")), allocations(7, held("a")))
    changes = timeline.allocated(allocations(9))

    (ended,) = changes.ended
    assert (ended.after_us, ended.since_us, ended.seen_us, ended.until_us) == (us(0), us(5), us(7), us(9))


def test_who_is_there_at_the_first_poll_was_never_seen_absent() -> None:
    timeline = told(allocations(0, held("a")))

    assert [each.after_us for each in timeline.present.values()] == [None]


def test_another_pod_of_the_same_name_is_another_holder() -> None:
    timeline = told(allocations(0, held("a", pod_uid="u1")), allocations(1, held("a", pod_uid="u2")))

    assert [(each.since_us, each.after_us) for each in timeline.present.values()] == [(us(1), us(0))]


def test_a_pod_whose_uid_becomes_known_or_is_not_told_again_is_the_same_holder() -> None:
    timeline = told(allocations(0, held("a")), allocations(1, held("a", pod_uid="u1")), allocations(2, held("a")))

    (assignment,) = timeline.present.values()
    assert (assignment.since_us, assignment.allocation.pod_uid) == (us(0), "u1")
    assert intervals(timeline, 0, 5) == [(0, 1, ["a"]), (1, 5, ["a"])]


def test_what_is_told_again_or_out_of_order_changes_nothing() -> None:
    timeline = told(allocations(0), allocations(5, held("a")))

    assert timeline.allocated(allocations(5)).ended == []
    assert timeline.allocated(allocations(3)).ended == []
    assert timeline.allocated(allocations(6, held("a"), held("a"))).parts == set()
    assert intervals(timeline, 0, 8) == [(0, 5, []), (5, 8, ["a"])]


def test_a_part_that_nobody_holds_any_more_is_forgotten_in_time() -> None:
    timeline = told(allocations(0, held("a")), allocations(5), *[allocations(at) for at in range(10, 700, 5)])
    timeline.allocated(allocations(700, held("b", part="GPU-1")))

    assert intervals(timeline, 600, 705) == [(600, 705, [])]
    assert list(timeline._periods) == ["GPU-1"]


def test_a_part_taken_back_by_the_device_plugin_is_not_offered() -> None:
    timeline = told(allocations(0), allocations(2, unhealthy=frozenset({"GPU-0"})), allocations(4))

    offered = [interval.period and interval.period.offered for interval in timeline.intervals("GPU-0", us(0), us(5))]
    assert offered == [True, False, True]

from copy import copy

from gputally.accounting.totals.series import Point
from gputally.accounting.totals.total import Total
from gputally.accounting.totals.totals import Totals

A = ("a",)
RATE = 2


def new(*, accounting_start_us: int = 0) -> Totals:
    return Totals(accounting_start_us=accounting_start_us)


def published(totals: Totals, now_us: int, total: Total = Total.ALLOCATED) -> list[tuple[int, int]]:
    """(value, ahead) by labels in the order of their appearance."""
    return [(row.value, row.ahead) for row in totals.publish(now_us)[total]]


def exposed(*, at_us: int = 10) -> Totals:
    """One series that grows by 2 from 0 on, and has been published as 0."""
    totals = new()
    totals.accrue(Total.ALLOCATED, A, RATE, (0, None), at_us=at_us)
    totals.publish(at_us)
    return totals


def restarted(totals: Totals, before: Totals | None = None) -> Totals:
    """The next process, from what this one handed over."""
    kept = dict(before.series if before else {}) | totals.drain()
    series = {key: copy(each) for key, each in kept.items() if each}
    return Totals(accounting_start_us=totals.accounting_start_us, evaluated_us=totals.evaluated_us, series=series)


def test_a_line_is_exact_at_any_instant() -> None:
    totals = exposed()

    assert [published(totals, at) for at in (11, 999)] == [[(22, 0)], [(1998, 0)]]


def test_a_new_series_is_zero_for_a_while_for_every_reader() -> None:
    totals = Totals(accounting_start_us=0, zero_us=60)
    totals.accrue(Total.ALLOCATED, A, RATE, (0, None), at_us=10)

    assert [published(totals, at) for at in (10, 11, 40, 69, 70)] == [[(0, 0)]] * 4 + [[(140, 0)]]


def test_a_read_changes_nothing_of_what_others_see() -> None:
    often, once = Totals(accounting_start_us=0, zero_us=60), Totals(accounting_start_us=0, zero_us=60)
    for totals in (often, once):
        totals.accrue(Total.ALLOCATED, A, RATE, (0, None), at_us=10)
    for at in range(11, 100):
        often.publish(at)

    assert published(often, 100) == published(once, 100) == [(200, 0)]


def test_a_new_series_of_an_old_observation_is_not_older_than_the_process() -> None:
    totals = Totals(accounting_start_us=0, resumed_us=1000, zero_us=60)
    totals.accrue(Total.ALLOCATED, A, RATE, (0, None), at_us=10)

    assert [published(totals, at) for at in (1001, 1059, 1060)] == [[(0, 0)], [(0, 0)], [(2120, 0)]]
    assert next(iter(totals.publish(1061)[Total.ALLOCATED])).created_us == 1000


def test_a_new_series_is_zero_for_as_long_after_a_clock_stepped_back() -> None:
    totals = Totals(accounting_start_us=0, evaluated_us=1000, zero_us=60)
    totals.accrue(Total.ALLOCATED, A, RATE, (0, None), at_us=10)

    assert [published(totals, at) for at in (20, 1059, 1060)] == [[(0, 0)], [(0, 0)], [(2120, 0)]]


def test_a_series_begins_when_it_began_whatever_the_next_process_is_told_to_wait() -> None:
    totals = Totals(accounting_start_us=0, zero_us=60)
    totals.accrue(Total.ALLOCATED, A, RATE, (0, None), at_us=10)
    totals.publish(20)
    series = {key: copy(each) for key, each in totals.drain().items() if each}
    after = Totals(accounting_start_us=0, evaluated_us=totals.evaluated_us, zero_us=0, series=series)

    assert [published(after, at) for at in (69, 70)] == [[(0, 0)], [(140, 0)]]


def test_a_declared_series_is_published_as_zero_before_it_counts() -> None:
    totals = new()
    totals.declare(Total.PREEMPTIONS, A, at_us=5)
    assert published(totals, 10, Total.PREEMPTIONS) == [(0, 0)]

    totals.count(Total.PREEMPTIONS, A, 1, at_us=11)
    assert published(totals, 20, Total.PREEMPTIONS) == [(1, 0)]


def test_a_series_tells_when_it_was_created_and_how_fast_it_grows() -> None:
    totals = exposed(at_us=7)

    assert list(totals.publish(20)[Total.ALLOCATED]) == [Point(A, 40, 0, RATE, 7)]


def test_a_correction_never_makes_a_counter_fall_and_what_it_is_ahead_shrinks_to_zero() -> None:
    totals = exposed()
    assert published(totals, 100) == [(200, 0)]

    totals.accrue(Total.ALLOCATED, A, -RATE, (60, 100), at_us=101)  # it had paused

    assert [published(totals, at) for at in (101, 110, 140, 150)] == [[(200, 78)], [(200, 60)], [(200, 0)], [(220, 0)]]


def test_a_correction_while_a_counter_is_ahead_does_not_make_it_fall() -> None:
    totals = exposed()
    published(totals, 100)
    for at in (101, 103):
        totals.accrue(Total.ALLOCATED, A, -RATE, (at - 21, at - 1), at_us=at)
        assert published(totals, at + 1)[0][0] == 200

    assert published(totals, 105) == [(200, 70)]


def test_several_corrections_between_two_evaluations_count_as_one() -> None:
    totals = exposed()
    published(totals, 100)

    for sign in (-1, 1, -1):
        totals.accrue(Total.ALLOCATED, A, sign * RATE, (60, 100), at_us=101)

    assert published(totals, 101) == [(200, 78)]


def test_what_was_never_published_leaves_nothing_ahead() -> None:
    totals = exposed()
    totals.accrue(Total.ALLOCATED, A, 5, (0, 1000), at_us=11)
    totals.accrue(Total.ALLOCATED, A, -5, (0, 1000), at_us=12)

    assert published(totals, 20) == [(40, 0)]


def test_what_a_new_series_had_before_it_was_shown_is_no_value_to_hold() -> None:
    totals = Totals(accounting_start_us=0, zero_us=60)
    totals.accrue(Total.ALLOCATED, A, RATE, (0, None), at_us=10)
    published(totals, 50)
    totals.accrue(Total.ALLOCATED, A, -RATE, (0, None), at_us=51)

    assert [published(totals, at) for at in (52, 100)] == [[(0, 0)], [(0, 0)]]


def test_a_clock_that_steps_back_stops_the_counters_and_lets_none_fall() -> None:
    totals = exposed()
    assert published(totals, 1000) == [(2000, 0)]

    assert published(totals, 400) == [(2002, 0)]  # an evaluation later, by a microsecond
    totals.accrue(Total.ALLOCATED, A, 7, (0, 100), at_us=401)
    assert published(totals, 402) == [(2704, 0)]
    totals.accrue(Total.ALLOCATED, A, -7, (0, 100), at_us=403)
    assert published(totals, 404) == [(2704, 698)]
    assert published(totals, 2000) == [(4000, 0)]


def test_corrections_between_two_evaluations_of_one_instant_let_no_counter_fall() -> None:
    totals = exposed()
    assert published(totals, 10) == [(22, 0)]

    totals.accrue(Total.ALLOCATED, A, -RATE, (0, None), at_us=10)

    assert published(totals, 10) == [(22, 22)]


def test_time_before_the_books_were_opened_is_left_out() -> None:
    totals = new(accounting_start_us=50)
    totals.accrue(Total.ALLOCATED, A, RATE, (0, None), at_us=60)
    totals.accrue(Total.COST, A, RATE, (0, 40), at_us=60)
    totals.accrue(Total.CAPACITY, A, RATE, (0, 70), at_us=60)
    totals.publish(60)

    assert {total: published(totals, 70, total)[0][0] for total in (Total.ALLOCATED, Total.COST, Total.CAPACITY)} == {
        Total.ALLOCATED: 40,
        Total.COST: 0,
        Total.CAPACITY: 40,
    }


def test_a_span_that_ends_before_it_begins_counts_nothing() -> None:
    totals = new()
    totals.accrue(Total.ALLOCATED, A, RATE, (10, 5), at_us=10)

    assert dict(totals.truth(Total.ALLOCATED))[A].at(100) == 0


def test_a_restart_goes_on_at_what_was_published() -> None:
    totals = exposed()
    published(totals, 100)
    totals.accrue(Total.ALLOCATED, A, -RATE, (60, None), at_us=101)
    published(totals, 101)
    after = restarted(totals)

    assert published(after, 105) == [(200, 80)]
    after.accrue(Total.ALLOCATED, A, RATE, (110, None), at_us=110)
    assert [published(after, at) for at in (150, 151)] == [[(200, 0)], [(202, 0)]]


def test_an_unchanged_line_needs_no_writing_to_go_on_without_a_fall() -> None:
    totals = exposed()
    kept = restarted(totals)
    published(totals, 100)
    assert totals.drain() == {}

    after = Totals(accounting_start_us=0, evaluated_us=totals.evaluated_us, series=kept.series)
    after.accrue(Total.ALLOCATED, A, -RATE, (50, None), at_us=100)

    assert published(after, 90) == [(200, 100)]


def test_a_restart_with_a_clock_behind_lets_no_counter_fall() -> None:
    totals = exposed()
    published(totals, 1000)

    assert published(restarted(totals), 500) == [(2002, 0)]


def test_a_series_that_was_published_before_a_restart_does_not_begin_at_zero_again() -> None:
    after = restarted(exposed())

    assert published(after, 50) == [(100, 0)]


def test_only_changed_series_are_handed_over_and_only_once() -> None:
    totals = exposed()
    totals.declare(Total.COST, A, at_us=10)

    assert set(totals.drain()) == {(Total.ALLOCATED, A), (Total.COST, A)}
    assert totals.drain() == {}


def test_what_is_handed_over_does_not_change_any_more() -> None:
    totals = exposed()
    handed = totals.drain()[Total.ALLOCATED, A]
    assert handed is not None
    totals.accrue(Total.ALLOCATED, A, RATE, (50, None), at_us=50)

    assert (handed.a, handed.b) == (0, RATE)


def test_closing_makes_final_what_accrued_and_stops_it() -> None:
    totals = exposed()
    published(totals, 100)
    totals.close(Total.ALLOCATED, at_us=120)
    totals.accrue(Total.ALLOCATED, A, 5, (120, None), at_us=120)

    assert published(totals, 130) == [(240 + 50, 0)]

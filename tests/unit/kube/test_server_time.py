"""Our time is the API server's, whatever our own clock says."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.kube.server_time import CONFIRMED_US, Answer, ServerTime
from tests.unit.aggregator.conftest import NOON_US

SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR


class World:
    """A server and us: time passes as the test says, and each has a clock of its own."""

    def __init__(self, *, wall_ahead_us: int = 0) -> None:
        self.server_us = NOON_US
        self.wall_ahead_us = wall_ahead_us
        self.monotonic_us = 5_000
        self.time = ServerTime(wall=lambda: self.server_us + self.wall_ahead_us, monotonic=lambda: self.monotonic_us)

    @property
    def error_us(self) -> int:
        """How far our time is ahead of the server's."""
        return self.time.now_us() - self.server_us

    @property
    def skew_us(self) -> int:
        return self.time.health.skew_us

    def passes(self, us: int) -> None:
        self.server_us += us
        self.monotonic_us += us

    def ask(
        self, *, there_us: int = 1_000, back_us: int = 1_000, off_us: int = 0, on_new_connection: bool = False
    ) -> None:
        """A request, which takes so long to get there and its answer so long to come back, by a clock that is off."""
        sent_us = self.monotonic_us
        self.passes(there_us)
        date = formatdate((self.server_us + off_us) // SECOND, usegmt=True)
        self.passes(back_us)
        self.time.observe(Answer(date, sent_us, self.monotonic_us, on_new_connection=on_new_connection))

    def confirm(self, *, off_us: int = 0) -> None:
        """The same answer twice, as far apart as it takes, the second one on a connection of its own."""
        self.ask(off_us=off_us)
        self.passes(CONFIRMED_US)
        self.ask(off_us=off_us, on_new_connection=True)

    def server_steps(self, us: int) -> None:
        """The server's clock is set; ours is not."""
        self.server_us += us
        self.wall_ahead_us -= us


def test_before_the_first_answer_it_is_our_wall_clock() -> None:
    assert World(wall_ahead_us=HOUR).error_us == HOUR


@pytest.mark.parametrize("ahead_us", [-300_000, 0, 300_000])
def test_a_wall_clock_that_may_be_right_is_used_as_it_is(ahead_us: int) -> None:
    world = World(wall_ahead_us=ahead_us)
    world.passes(500_000)
    world.ask()

    assert world.error_us == ahead_us
    assert world.skew_us == 0


@pytest.mark.parametrize("ahead_us", [-HOUR, -2 * SECOND, 2 * SECOND, HOUR])
def test_a_wrong_wall_clock_is_replaced_by_the_latest_time_the_server_can_have(ahead_us: int) -> None:
    world = World(wall_ahead_us=ahead_us)
    world.passes(700_000)
    world.confirm()

    assert 0 <= world.error_us <= 300_000 + CONFIRMED_US // 2_000  # the answer's second ended 300 ms after we asked
    assert abs(world.skew_us - ahead_us) <= SECOND


def test_answers_at_other_parts_of_the_second_narrow_it_down() -> None:
    world = World(wall_ahead_us=HOUR)
    world.confirm()
    for _ in range(20):
        world.ask()
        world.passes(1_050_000)

    assert 0 <= world.error_us < 60_000
    assert abs(world.skew_us - HOUR) < 60_000


@pytest.mark.parametrize("step_us", [-HOUR, HOUR])
def test_a_step_of_the_wall_clock_changes_nothing_and_shows_at_the_next_answer(step_us: int) -> None:
    world = World()
    world.ask()
    world.wall_ahead_us = step_us
    stepped_us = world.error_us
    world.passes(SECOND)
    world.ask()

    assert stepped_us == 0
    assert 0 <= world.error_us <= SECOND
    assert abs(world.skew_us - step_us) <= SECOND


def test_a_wall_clock_that_is_right_again_makes_time_fall_no_further_than_is_proven() -> None:
    world = World(wall_ahead_us=HOUR)
    world.passes(700_000)
    world.confirm()
    ahead_us = world.error_us
    world.wall_ahead_us = 0
    world.ask()

    assert world.skew_us == 0
    assert 0 < ahead_us - 2_000 <= world.error_us <= ahead_us


def test_time_that_stood_still_with_the_machine_is_made_up_for_by_the_wall_clock() -> None:
    world = World()
    world.ask()
    world.server_us += HOUR  # a paused machine: its monotonic clock has stopped, its wall clock was set since
    late_us = world.error_us
    world.ask()

    assert (late_us, world.error_us) == (-HOUR, 0)


@pytest.mark.parametrize("step_us", [-HOUR, HOUR])
def test_a_server_whose_clock_steps_is_followed_once_a_second_answer_confirms_it(step_us: int) -> None:
    world = World()
    world.ask()
    world.server_steps(step_us)
    world.ask()
    first_us, is_doubted = world.error_us, world.time.doubted.is_set()
    world.passes(CONFIRMED_US)
    world.ask(on_new_connection=True)

    assert (first_us, is_doubted) == (-step_us, True)
    assert 0 <= world.error_us <= SECOND + 2_000
    assert not world.time.doubted.is_set()
    assert world.time.health.rejected == 0


@pytest.mark.parametrize("step_us", [-HOUR, HOUR])
def test_a_server_whose_clock_is_set_to_the_time_our_wall_clock_tells_is_followed_at_once(step_us: int) -> None:
    world = World(wall_ahead_us=step_us)
    world.confirm()
    world.server_steps(step_us)
    world.ask()

    assert 0 <= world.error_us <= SECOND


@pytest.mark.parametrize("off_us", [-DAY, -4 * SECOND, 4 * SECOND, DAY])
def test_one_answer_with_a_wrong_date_changes_nothing_and_is_counted_when_the_next_one_is_right(off_us: int) -> None:
    world = World()
    world.ask()
    world.ask(off_us=off_us)
    wrong_us = world.error_us
    world.passes(SECOND // 2)
    world.ask(on_new_connection=True)

    assert (wrong_us, world.error_us, world.skew_us) == (0, 0, 0)
    assert world.time.health.rejected == 1
    assert not world.time.doubted.is_set()


def test_the_same_wrong_date_again_on_a_connection_that_others_use_proves_nothing() -> None:
    world = World()
    world.ask()
    for _ in range(50):
        world.ask(off_us=DAY)
        world.passes(CONFIRMED_US)

    assert world.error_us == 0


def test_a_wrong_date_on_new_connections_proves_nothing_before_the_time_is_over() -> None:
    world = World()
    world.ask()
    world.ask(off_us=DAY)
    for _ in range(9):
        world.passes(SECOND)
        world.ask(off_us=DAY, on_new_connection=True)

    assert world.error_us == 0


def test_of_two_servers_in_turn_the_one_that_was_first_is_believed() -> None:
    world = World()
    for turn in range(2_000):
        world.ask(off_us=DAY * (turn % 2), on_new_connection=turn % 3 > 0)
        world.passes(SECOND)

    assert world.error_us == 0
    assert world.time.health.rejected == 999


@pytest.mark.parametrize("wall_ahead_us", [0, -HOUR])
def test_a_first_answer_with_a_wrong_date_is_not_believed(wall_ahead_us: int) -> None:
    world = World(wall_ahead_us=wall_ahead_us)
    world.ask(off_us=DAY)
    is_doubted = world.time.doubted.is_set()
    world.passes(SECOND)
    world.confirm()

    assert is_doubted
    assert 0 <= world.error_us <= SECOND + 2_000
    assert world.time.health.rejected == 1
    assert not world.time.doubted.is_set()


def test_servers_that_differ_by_less_than_their_dates_can_tell_are_followed_at_once() -> None:
    world = World()
    for turn in range(200):
        world.ask(off_us=(turn % 2) * SECOND, on_new_connection=turn % 3 > 0)
        world.passes(700_000)

    assert abs(world.error_us) <= 2 * SECOND
    assert world.time.health.rejected == 0


@pytest.mark.parametrize(
    "date", ["", "now", "Monday, 08-Jun-26 12:00:00 GMT", "Mon, 08 Jun 2026 12:00:60 GMT", "Mon, 08 Jun 2026 12:00:00"]
)
def test_an_answer_without_a_usable_date_changes_nothing(date: str) -> None:
    world = World(wall_ahead_us=HOUR)
    world.time.observe(Answer(date, 0, 10))

    assert world.error_us == HOUR
    assert world.skew_us == 0


def test_clocks_that_drift_apart_as_far_as_clocks_may_are_followed_without_a_jump() -> None:
    world = World(wall_ahead_us=HOUR)
    world.confirm()
    for _ in range(200):
        world.ask()
        world.passes(30_050_000)
        world.server_us += 30_050_000 // 2_500
    errors = []
    for _ in range(200):
        world.ask()
        errors.append(world.error_us)
        world.passes(30_050_000)
        world.server_us += 30_050_000 // 2_500

    assert min(errors) >= 0
    assert max(errors) < 200_000


@given(
    st.integers(-HOUR, HOUR),
    st.lists(st.tuples(st.integers(0, 100 * SECOND), st.integers(0, SECOND), st.integers(0, SECOND)), min_size=1),
)
def test_it_is_never_behind_a_server_of_another_time_and_falls_only_as_far_as_that_proves(
    ahead_us: int, answers: list[tuple[int, int, int]]
) -> None:
    world = World(wall_ahead_us=ahead_us)
    world.confirm()
    for after_us, there_us, back_us in answers:
        world.passes(after_us)
        before_us = world.error_us
        world.ask(there_us=there_us, back_us=back_us)

        assert -1 - SECOND - back_us <= world.error_us <= max(SECOND + there_us, 0)
        if world.skew_us:
            assert world.error_us >= 0
        if world.error_us < before_us:  # in that time nothing else was proven
            assert world.time._bounds is not None
            assert world.error_us == world.time._bounds.high_us - (world.server_us - world.monotonic_us)

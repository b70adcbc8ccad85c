"""Since when a change can have happened unseen."""

from gputally.sources.continuity import CATCH_UP_US, Continuity


def test_before_anything_is_known_a_change_happens_when_it_is_seen() -> None:
    assert Continuity().since_us(10) == 10
    assert Continuity().interrupted_since_us(10) is None


def test_until_caught_up_a_change_is_as_old_as_the_interruption() -> None:
    stream = Continuity(complete_us=5)
    stream.connected(100)

    assert stream.since_us(100) == 5
    assert stream.since_us(100 + CATCH_UP_US - 1) == 5
    assert stream.since_us(100 + CATCH_UP_US) == 100 + CATCH_UP_US


def test_bytes_that_come_while_catching_up_do_not_shorten_the_next_interruption() -> None:
    stream = Continuity(complete_us=5)
    stream.connected(100)
    stream.received(150)
    stream.interrupted()
    stream.connected(200)

    assert stream.since_us(200) == 5


def test_a_bookmark_ends_catching_up() -> None:
    stream = Continuity(complete_us=5)
    stream.connected(100)
    stream.caught_up(101)

    assert stream.since_us(102) == 102


def test_after_an_interruption_a_change_is_as_old_as_the_last_live_byte() -> None:
    stream = Continuity(complete_us=5)
    stream.connected(100)
    stream.caught_up(101)
    stream.received(300)
    stream.interrupted()

    assert stream.since_us(900) == 300


def test_a_clock_that_steps_back_never_makes_a_change_happen_after_it_is_seen() -> None:
    stream = Continuity(complete_us=500)
    stream.connected(100)

    assert stream.since_us(110) == 110
    assert stream.interrupted_since_us(110) == 110

"""Since when a change can have happened unseen."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from gputally.sources.continuity import LIVE_US, QUIET_SECONDS, Continuity

SECOND = 1_000_000
LATENCY_US = 5_000
SENDING_US = 1_000
"""Between two changes of a backlog."""


def test_before_anything_is_known_a_change_happens_when_it_is_seen() -> None:
    assert Continuity().since_us(10) == 10
    assert Continuity().interrupted_since_us(10) is None


def test_after_an_interruption_a_change_is_as_old_as_that_until_a_quiet_wait() -> None:
    stream = Continuity(complete_us=0)
    stream.arrived(60 * SECOND, waited_seconds=QUIET_SECONDS / 2)
    backlog_us = stream.since_us(60 * SECOND)
    stream.arrived(61 * SECOND, waited_seconds=QUIET_SECONDS)

    assert backlog_us == 0
    assert stream.since_us(61 * SECOND) == 61 * SECOND


def test_what_lies_ready_again_and_again_may_have_lain_there_since_the_last_wait() -> None:
    stream = Continuity(complete_us=0)
    stream.arrived(SECOND, waited_seconds=QUIET_SECONDS)
    for tenths in range(12, 25):
        stream.arrived(tenths * SECOND // 10, waited_seconds=0)

    assert stream.since_us(24 * SECOND // 10) == SECOND


def test_held_back_for_long_a_stream_is_behind_until_a_quiet_wait() -> None:
    stream = Continuity(complete_us=0)
    stream.arrived(SECOND, waited_seconds=QUIET_SECONDS)
    stream.arrived(9 * SECOND, waited_seconds=0)
    stream.arrived(10 * SECOND, waited_seconds=0.001)  # the network makes a pause, too, where a backlog goes on

    assert stream.since_us(10 * SECOND) == SECOND


def test_a_new_connection_may_send_a_backlog_however_short_the_interruption() -> None:
    stream = Continuity(complete_us=0)
    stream.arrived(SECOND, waited_seconds=QUIET_SECONDS)
    stream.connected()
    for tenths in range(12, 25):
        stream.arrived(tenths * SECOND // 10, waited_seconds=0.1)

    assert stream.since_us(24 * SECOND // 10) == SECOND


def test_what_comes_after_an_interruption_of_less_than_a_second_is_live() -> None:
    stream = Continuity(complete_us=5)

    assert stream.since_us(5 + LIVE_US - 1) == 5 + LIVE_US - 1
    assert stream.since_us(5 + LIVE_US) == 5


def test_a_bookmark_that_had_to_be_waited_for_ends_catching_up() -> None:
    stream = Continuity(complete_us=0)
    stream.arrived(60 * SECOND, waited_seconds=0.001)
    stream.bookmarked(60 * SECOND)

    assert stream.since_us(60 * SECOND) == 60 * SECOND


def test_a_bookmark_that_lay_unread_tells_nothing_of_now() -> None:
    stream = Continuity(complete_us=0)
    stream.arrived(60 * SECOND, waited_seconds=0)
    stream.bookmarked(60 * SECOND)

    assert stream.since_us(60 * SECOND) == 0


def test_what_comes_after_a_new_object_is_not_older_than_that() -> None:
    stream = Continuity(complete_us=0)
    stream.created(40 * SECOND, 60 * SECOND)
    stream.created(30 * SECOND, 60 * SECOND)

    assert stream.since_us(60 * SECOND) == 40 * SECOND


def test_a_new_object_of_a_server_ahead_of_the_time_is_new_now() -> None:
    stream = Continuity(complete_us=0)
    stream.created(90 * SECOND, 60 * SECOND)

    assert stream.interrupted_since_us(60 * SECOND) == 60 * SECOND


def test_a_moment_that_lies_ahead_by_less_than_a_second_is_now() -> None:
    assert Continuity(complete_us=10 * SECOND + 500_000).interrupted_since_us(10 * SECOND) == 10 * SECOND


def test_a_moment_of_another_time_that_lies_ahead_tells_nothing() -> None:
    stream = Continuity(complete_us=20 * SECOND)

    assert stream.interrupted_since_us(10 * SECOND) == 0
    assert stream.since_us(10 * SECOND) == 0


Outage = tuple[int, int]
"""Without a connection from .. to (µs)."""
Told = tuple[int, int, int]
"""A change: when it happened, when it was told, and the earliest moment it can have happened by what we know."""


def arrivals(changes: Sequence[int], outages: Sequence[Outage]) -> Iterator[int]:
    """When the bytes of each change come; what happens without a connection is sent at the next one."""
    last_us = 0
    for happened_us in changes:
        sent_us = next((end for start, end in outages if start <= happened_us < end), happened_us)
        last_us = max(sent_us + LATENCY_US, last_us + SENDING_US)
        yield last_us


def reading(
    changes: Sequence[int],
    outages: Sequence[Outage],
    busy: Sequence[int],
    *,
    news: frozenset[int] = frozenset(),
    caught_up: bool = False,
) -> list[Told]:
    """A reader that is busy for a while after each chunk. The `changes` with numbers in `news` tell of new objects."""
    stream, told = Continuity(complete_us=0), list[Told]()
    stream.arrived(0, waited_seconds=QUIET_SECONDS if caught_up else 0)
    now_us = connection_us = 0
    coming = list(zip(changes, arrivals(changes, outages), strict=True))
    while len(told) < len(coming):
        first_us = coming[len(told)][1]
        connected_us = max((end for _, end in outages if end <= first_us), default=0)
        if connected_us > connection_us:
            connection_us = connected_us
            stream.connected()
        waited_us = max(0, first_us - max(now_us, connected_us))
        now_us = max(now_us, first_us)
        stream.arrived(now_us, waited_seconds=waited_us / SECOND)
        for happened_us, came_us in coming[len(told) :]:
            if came_us > now_us:
                break
            if len(told) in news:
                stream.created(happened_us - happened_us % SECOND, now_us)
            told.append((happened_us, now_us, stream.since_us(now_us)))
        now_us += busy[len(told) % len(busy)]
    return told


moments = st.lists(st.integers(10_000, 2 * SECOND), min_size=1, max_size=80).map(lambda gaps: [*accumulate(gaps)])
"""When changes happen (µs)."""


@st.composite
def outages(draw: st.DrawFn) -> list[Outage]:
    lengths = draw(st.lists(st.integers(1_000, 20 * SECOND), max_size=8))
    edges = [*accumulate(lengths)]
    return list(zip(edges[::2], edges[1::2], strict=False))


@given(moments, outages(), st.lists(st.sampled_from((0, 1_000, 900_000, 5 * SECOND)), min_size=1), st.data())
def test_no_change_is_older_than_said_however_the_stream_is_cut_and_held_back(
    changes: list[int], cuts: list[Outage], busy: list[int], data: st.DataObject
) -> None:
    news = data.draw(st.frozensets(st.integers(0, len(changes))))

    for happened_us, at_us, since_us in reading(changes, cuts, busy, news=news):
        earliest_us = at_us - LIVE_US if since_us == at_us else since_us
        assert happened_us >= earliest_us - LATENCY_US


@given(moments, st.sampled_from((0, 1_000, 9_000)))
def test_on_a_live_stream_every_change_happens_when_it_is_seen(changes: list[int], busy_us: int) -> None:
    told = reading(changes, [], [busy_us], caught_up=True)

    assert all(since_us == at_us for _, at_us, since_us in told)


@given(st.integers(100_000, LIVE_US // 2))
def test_pauses_of_a_reader_that_keeps_up_make_nothing_older(busy_us: int) -> None:
    changes = [*range(10_000, 20 * SECOND, 10_000)]
    told = reading(changes, [], [busy_us, *[0] * 200], caught_up=True)

    assert all(since_us == at_us for _, at_us, since_us in told)


@given(st.lists(st.integers(10_000, 100_000), min_size=600, max_size=600))
def test_a_busy_stream_is_live_again_soon_after_an_outage_when_objects_are_created(gaps: list[int]) -> None:
    told = reading([*accumulate(gaps)], [(2 * SECOND, 4 * SECOND)], [1_000], news=frozenset(range(0, 600, 10)))

    assert all(since_us == at_us for happened_us, at_us, since_us in told if happened_us > 7 * SECOND)

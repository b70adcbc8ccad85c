"""Since when a change can have happened unseen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.kube.reflector import ANSWER_SECONDS, LIVE_US, QUIET_SECONDS, CompletenessTracker

SECOND = 1_000_000
START_US = 100 * SECOND
SENDING_US = 1_000
"""Between two changes of a backlog."""


def caught_up(at_us: int) -> CompletenessTracker:
    """A stream that is known to be complete up to `at_us`."""
    stream = CompletenessTracker(complete_us=0)
    stream.arrived(at_us, waited_seconds=ANSWER_SECONDS)
    return stream


def test_before_anything_is_known_a_change_happens_when_it_is_seen() -> None:
    assert CompletenessTracker().since_us(10) == 10
    assert CompletenessTracker().interrupted_since_us(10) is None


def test_after_an_interruption_a_change_is_half_a_second_older_than_that_until_a_quiet_wait() -> None:
    stream = CompletenessTracker(complete_us=10 * SECOND)
    stream.arrived(60 * SECOND, waited_seconds=QUIET_SECONDS / 2)
    backlog_us = stream.since_us(60 * SECOND)
    stream.arrived(61 * SECOND, waited_seconds=QUIET_SECONDS)

    assert backlog_us == 10 * SECOND - SECOND // 2
    assert stream.since_us(61 * SECOND) == 61 * SECOND


@pytest.mark.parametrize("connections", [1, 2])
def test_the_first_bytes_of_a_connection_show_a_quiet_stream_only_after_two_seconds(connections: int) -> None:
    hasty, patient = CompletenessTracker(complete_us=10 * SECOND), CompletenessTracker(complete_us=10 * SECOND)
    for stream in [hasty, patient] * (connections - 1):
        stream.arrived(10 * SECOND, waited_seconds=ANSWER_SECONDS)
        stream.connected()
    hasty.arrived(60 * SECOND, waited_seconds=1.999)
    patient.arrived(60 * SECOND, waited_seconds=2)

    assert hasty.since_us(60 * SECOND) == 10 * SECOND - SECOND // 2
    assert patient.since_us(60 * SECOND) == 60 * SECOND


def test_what_lies_ready_again_and_again_may_have_lain_there_since_the_last_wait() -> None:
    stream = caught_up(SECOND)
    for tenths in range(12, 25):
        stream.arrived(tenths * SECOND // 10, waited_seconds=0)

    assert stream.since_us(24 * SECOND // 10) == SECOND // 2


def test_held_back_for_long_a_stream_is_behind_until_a_quiet_wait() -> None:
    stream = caught_up(SECOND)
    stream.arrived(9 * SECOND, waited_seconds=0)
    stream.arrived(10 * SECOND, waited_seconds=0.001)  # the network makes a pause, too, where a backlog goes on

    assert stream.since_us(10 * SECOND) == SECOND // 2


def test_a_new_connection_may_send_a_backlog_however_short_the_interruption() -> None:
    stream = caught_up(SECOND)
    stream.connected()
    for tenths in range(12, 25):
        stream.arrived(tenths * SECOND // 10, waited_seconds=0.1)

    assert stream.since_us(24 * SECOND // 10) == SECOND // 2


def test_what_comes_after_an_interruption_of_less_than_half_a_second_is_live() -> None:
    stream = CompletenessTracker(complete_us=5 * SECOND)

    assert stream.since_us(5_499_999) == 5_499_999
    assert stream.since_us(5_500_000) == 4_500_000


def test_a_bookmark_that_had_to_be_waited_for_ends_catching_up() -> None:
    stream = CompletenessTracker(complete_us=0)
    stream.arrived(60 * SECOND, waited_seconds=0.001)
    stream.bookmarked(60 * SECOND)

    assert stream.since_us(60 * SECOND) == 60 * SECOND


def test_a_bookmark_that_lay_unread_tells_nothing_of_now() -> None:
    stream = CompletenessTracker(complete_us=0)
    stream.arrived(60 * SECOND, waited_seconds=0)
    stream.bookmarked(60 * SECOND)

    assert stream.since_us(60 * SECOND) == 0


def test_what_comes_after_a_new_object_is_not_older_than_half_a_second_before_that() -> None:
    stream = CompletenessTracker(complete_us=0)
    stream.created(40 * SECOND, 60 * SECOND)
    stream.created(30 * SECOND, 60 * SECOND)

    assert stream.since_us(60 * SECOND) == 40 * SECOND - SECOND // 2


@pytest.mark.parametrize(("told_us", "since_us"), [(60_499_998, 60_900_000), (60_500_000, 59_500_000)])
def test_an_object_created_less_than_half_a_second_ago_ends_catching_up(told_us: int, since_us: int) -> None:
    stream = CompletenessTracker(complete_us=0)
    stream.created(60 * SECOND, told_us)
    stream.arrived(told_us + 1, waited_seconds=0.001)

    assert stream.since_us(60_900_000) == since_us


def test_a_new_object_of_a_server_ahead_of_the_time_is_new_now() -> None:
    stream = CompletenessTracker(complete_us=0)
    stream.created(90 * SECOND, 60 * SECOND)

    assert stream.interrupted_since_us(60 * SECOND) == 60 * SECOND - SECOND // 2


def test_a_moment_that_lies_ahead_by_less_than_half_a_second_is_now() -> None:
    assert CompletenessTracker(complete_us=10_499_999).interrupted_since_us(10 * SECOND) == 9_500_000
    assert CompletenessTracker(complete_us=10_500_000).interrupted_since_us(10 * SECOND) == 0


def test_a_moment_of_another_time_that_lies_ahead_tells_nothing() -> None:
    stream = CompletenessTracker(complete_us=20 * SECOND)

    assert stream.interrupted_since_us(10 * SECOND) == 0
    assert stream.since_us(10 * SECOND) == 0


Outage = tuple[int, int]
"""Without a connection from .. to (µs)."""
Told = tuple[int, int, int]
"""A change: when it happened, when it was told, and the earliest moment it can have happened by what we know."""


@dataclass(frozen=True)
class Network:
    """What lies between the changes and their reader. A new connection is silent for `answer_us`."""

    outages: Sequence[Outage] = ()
    latency_us: int = 5_000
    answer_us: int = 0

    def arrivals(self, changes: Sequence[int]) -> Iterator[int]:
        """When the bytes of each change come; those that an outage loses are sent at the next connection."""
        last_us = 0
        for happened_us in changes:
            last_us = max(happened_us + self.latency_us, last_us + SENDING_US)
            for start, end in self.outages:
                first_us = end + self.answer_us + self.latency_us
                last_us = first_us if start <= last_us < first_us else last_us
            yield last_us

    def connected_us(self, at_us: int) -> int:
        """When the last connection up to `at_us` began."""
        return max((end for _, end in self.outages if end <= at_us), default=START_US)


def reading(
    changes: Sequence[int],
    busy: Sequence[int],
    network: Network = Network(),
    *,
    news: frozenset[int] = frozenset(),
    caught_up: bool = False,
) -> list[Told]:
    """A reader that is busy for a while after each chunk. The `changes` with numbers in `news` tell of new objects."""
    stream, told = CompletenessTracker(complete_us=START_US), list[Told]()
    if caught_up:
        stream.arrived(START_US, waited_seconds=ANSWER_SECONDS)
    now_us = connection_us = START_US
    coming = list(zip(changes, network.arrivals(changes), strict=True))
    while len(told) < len(coming):
        first_us = coming[len(told)][1]
        connected_us = network.connected_us(first_us)
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


def from_start(gaps: Sequence[int]) -> list[int]:
    """The moments (µs) after each of the gaps."""
    return [*accumulate(gaps, initial=START_US)][1:]


moments = st.lists(st.integers(10_000, 2 * SECOND), min_size=1, max_size=80).map(from_start)
"""When changes happen (µs)."""


@st.composite
def networks(draw: st.DrawFn) -> Network:
    edges = from_start(draw(st.lists(st.integers(1_000, 20 * SECOND), max_size=8)))
    return Network(
        outages=list(zip(edges[::2], edges[1::2], strict=False)),
        latency_us=draw(st.sampled_from((5_000, 400_000))),
        answer_us=draw(st.sampled_from((0, 300_000, 1_500_000))),
    )


@given(moments, networks(), st.lists(st.sampled_from((0, 1_000, 400_000, 900_000, 5 * SECOND)), min_size=1), st.data())
def test_no_change_is_older_than_said_however_the_stream_is_cut_and_held_back(
    changes: list[int], network: Network, busy: list[int], data: st.DataObject
) -> None:
    news = data.draw(st.frozensets(st.integers(0, len(changes))))

    for happened_us, at_us, since_us in reading(changes, busy, network, news=news):
        assert happened_us >= (at_us - 2 * LIVE_US if since_us == at_us else since_us)


@given(moments, st.sampled_from((0, 1_000, 9_000)))
def test_on_a_live_stream_every_change_happens_when_it_is_seen(changes: list[int], busy_us: int) -> None:
    told = reading(changes, [busy_us], caught_up=True)

    assert all(since_us == at_us for _, at_us, since_us in told)


@given(st.integers(100_000, LIVE_US // 2))
def test_pauses_of_a_reader_that_keeps_up_make_nothing_older(busy_us: int) -> None:
    changes = [*range(START_US + 10_000, START_US + 20 * SECOND, 10_000)]
    told = reading(changes, [busy_us, *[0] * 200], caught_up=True)

    assert all(since_us == at_us for _, at_us, since_us in told)


@given(st.lists(st.integers(10_000, 100_000), min_size=600, max_size=600))
def test_a_busy_stream_is_live_again_soon_after_an_outage_when_objects_are_created(gaps: list[int]) -> None:
    network = Network(outages=[(START_US + 2 * SECOND, START_US + 4 * SECOND)])
    told = reading(from_start(gaps), [1_000], network, news=frozenset(range(0, 600, 2)))

    assert all(since_us == at_us for happened_us, at_us, since_us in told if happened_us > START_US + 7 * SECOND)

"""The contract of every ledger for closed periods: stored once, in order, and any later change is found."""

from collections import Counter

import pytest
from msgspec.structs import replace

from gputally.errors import LedgerDamaged, LedgerError
from gputally.ledger.closed_period import ClosedPeriod, broken_chain, sums_of
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import Window
from gputally.model.units import GPU, US_PER_DAY, US_PER_SECOND
from gputally.reports.closing import draft_period
from tests.contract.conftest import BackEnd
from tests.contract.records import pod, segment, step, us
from tests.core.closings import close, completed, truth

FIRST, SECOND, THIRD = (Window(us(start), us(start + 1000)) for start in (1000, 2000, 3000))
GPU_SECOND = GPU * US_PER_SECOND
DAY = 86_400
START = 79_200
"""22:00."""


def totals(period: ClosedPeriod) -> dict[tuple[int, str], int]:
    """GPU-seconds by the number of the period and the tenant."""
    sums = Counter[tuple[int, str]]()
    for line in period.lines:
        sums[line.of, line.key.labels[0]] += line.gpu_time
    return {key: gpu_time // GPU_SECOND for key, gpu_time in sums.items()}


def test_a_closed_period_is_read_as_it_was_written(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.bind("cluster-1")
    big = 10**9 * GPU
    ledger.write(step(pod("a", segment(900, 1500), segment(1500, 2500, price=None, quantity=big), end_us=us(2500))))

    closed = close(ledger, reader, FIRST, name="first")

    assert reader.closed_periods() == [closed]
    assert (closed.number, closed.name, closed.cluster, closed.previous) == (1, "first", "cluster-1", "")
    assert [line.gpu_time for line in closed.lines] == [500 * big * US_PER_SECOND, 500 * GPU_SECOND]


def test_what_came_later_is_a_correction_in_the_next_period(ledger: Ledger, reader: LedgerReader) -> None:
    """An end in the first period becomes known after it was closed, and another tenant there."""
    running = pod("a", segment(1000, None), end_us=None, end_by=None, gap=None)
    ledger.write(step(running, pod("b", segment(1200, 1300))))
    first = close(ledger, reader, FIRST)
    revised = replace(running, segments=(segment(1000, 1400),), revision=2)
    ledger.write(step(revised, pod("b", segment(1200, 1300, tenant="blue"), revision=2), live=None))
    second, third = close(ledger, reader, SECOND), close(ledger, reader, THIRD)

    assert totals(first) == {(1, "red"): 1100}
    assert totals(second) == {(1, "red"): -700, (1, "blue"): 100}
    assert totals(third) == {}
    assert (second.previous, third.previous) == (first.hash, second.hash)


def test_time_between_two_closed_periods_belongs_to_neither(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, 4000))))

    assert totals(close(ledger, reader, FIRST)) == {(1, "red"): 1000}
    assert totals(close(ledger, reader, THIRD)) == {(2, "red"): 1000}
    assert sums_of(reader.closed_periods()) == Counter(
        {
            (number, key): gpu_time
            for number, window in ((1, FIRST), (2, THIRD))
            for key, gpu_time in truth(reader, window).items()
        }
    )


def test_a_period_is_closed_once_and_in_order(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, 2500))))
    draft = completed(draft_period(reader, name="first", window=FIRST, zone="UTC"))
    ledger.close_period(draft)

    for wrong in (draft, replace(draft, number=3, previous=draft.hash), replace(draft, number=2, previous="0" * 64)):
        with pytest.raises(LedgerError, match="first: is number"):
            ledger.close_period(wrong)

    assert reader.closed_periods() == [draft]


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        (Window(us(1500), us(2500)), "late begins before the end of first, which is closed"),
        (Window(us(4000), us(5001)), "late is not accounted to its end yet"),
    ],
)
def test_a_period_that_overlaps_or_is_not_over_cannot_be_closed(
    ledger: Ledger, reader: LedgerReader, window: Window, reason: str
) -> None:
    ledger.write(step(pod("a", segment(1000, 2500))))
    close(ledger, reader, FIRST, name="first")

    with pytest.raises(LedgerError, match=reason):
        draft_period(reader, name="late", window=window, zone="UTC")


def test_a_period_that_failed_halfway_is_not_there(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, 2500))))
    draft = completed(draft_period(reader, name="first", window=FIRST, zone="UTC"))

    with pytest.raises(AttributeError):
        ledger.close_period(replace(draft, lines=(*draft.lines, None)))  # fails after a line

    assert reader.closed_periods() == []
    ledger.close_period(draft)


def test_a_closed_period_of_any_time_zone_is_compared_after_its_details_are_rolled_up(
    ledger: Ledger, reader: LedgerReader
) -> None:
    """Its days end at 22:00 UTC. Of two pods that outlast the first one, only one is still there as a whole."""
    first, second, third = (Window(us(DAY * number + START), us(DAY * (number + 1) + START)) for number in range(3))
    ended = pod("a", segment(START + 5, DAY + START + 777))
    lasting = pod("b", segment(START + 9, None), end_us=None, end_by=None, gap=None)
    ledger.write(step(ended, lasting, pods={"b": lasting}, at=DAY + START + 777))
    ledger.write(step(at=2 * DAY + START, live=None))
    close(ledger, reader, first)
    ledger.write(step(at=9 * DAY, live=None))
    assert list(ledger.roll_up(2 * US_PER_DAY))[-1] == 1

    closed = close(ledger, reader, second)
    revised = pod("b", segment(START + 9, START + 1009), revision=2)
    ledger.write(step(revised, at=9 * DAY, live=None))

    assert totals(closed) == {(2, "red"): 777 + DAY}
    assert totals(close(ledger, reader, third)) == {(1, "red"): 1009 - DAY, (2, "red"): -DAY}


CHANGES = {
    "UPDATE closed_lines SET gpu_time = '1' WHERE period = 2 AND ordinal = 0": "second was changed",
    "UPDATE closed_lines SET tenant = 'blue' WHERE period = 1": "first was changed",
    "UPDATE closed_lines SET per_gpu_hour = '0.5' WHERE period = 2": "second was changed",
    "UPDATE closed_lines SET of_period = 1 WHERE period = 2": "second was changed",
    "DELETE FROM closed_lines WHERE period = 2": "second was changed",
    "INSERT INTO closed_lines SELECT 2, 9, of_period, tenant, tier, queue, gpu_model, pool, resource, state, price_key,"
    "currency, per_gpu_hour, basis, purchase, gpu_time FROM closed_lines WHERE of_period = 1": "second was changed",
    "UPDATE closed_periods SET end_us = end_us + 1 WHERE number = 1": "first was changed",
    "UPDATE closed_periods SET version = '9' WHERE number = 3": "third was changed",
    "DELETE FROM closed_periods WHERE number = 2": "third does not follow",
    "UPDATE closed_lines SET gpu_time = 'x' WHERE period = 3": "a line of closed period number 3 was changed",
    "UPDATE closed_lines SET per_gpu_hour = 'x' WHERE period = 3": "a line of closed period number 3 was changed",
}


@pytest.mark.parametrize(("sql", "found"), CHANGES.items(), ids=range(len(CHANGES)))
def test_the_check_names_the_first_period_that_was_changed(
    back_end: BackEnd, ledger: Ledger, reader: LedgerReader, sql: str, found: str
) -> None:
    ledger.write(step(pod("a", segment(1000, 4000))))
    for name, window in (("first", FIRST), ("second", SECOND), ("third", THIRD)):
        close(ledger, reader, window, name=name)
    assert list(ledger.check())
    assert broken_chain(reader.closed_periods()) is None

    back_end.tamper(sql)

    with pytest.raises(LedgerDamaged, match=found):
        list(ledger.check())

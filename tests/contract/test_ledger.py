"""The contract of every ledger, on all back-ends."""

from typing import Any

import pytest

from gputally.accounting.changes import Changes, Saved
from gputally.accounting.totals.label_limiter import KnownValue
from gputally.accounting.totals.series import Series
from gputally.accounting.totals.total import Total
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Checkpoint
from gputally.model.pod_record import PodRecord
from tests.contract.conftest import BackEnd
from tests.contract.records import (
    BALANCED,
    CLASS_VERSION,
    FACTS,
    NODE,
    OPENED_S,
    PREEMPTED,
    all_segments,
    line,
    pod,
    segment,
    segments_of,
    step,
    us,
)


def saved_by(back_end: BackEnd, *steps: Changes) -> Saved:
    """The state that a process loads after another one wrote `steps` and ended."""
    with back_end.open() as ledger:
        for each in steps:
            ledger.write(each)
    with back_end.open() as ledger:
        return ledger.saved(now_us=us(5000))


def test_accounting_in_a_new_ledger_starts_at_the_start_of_the_second(ledger: Ledger) -> None:
    now_us = us(5000) + 999_999

    assert ledger.saved(now_us=now_us) == Saved(
        accounting_start_us=us(5000), evaluated_us=now_us, at_us=us(5000), resumed_us=now_us
    )


def test_a_segment_is_read_as_it_was_written(ledger: Ledger, reader: LedgerReader) -> None:
    record = pod("a", segment(1000, 1010), segment(1010, None, price=None))

    ledger.write(step(record))

    assert all_segments(reader) == segments_of(record)


def test_a_later_revision_replaces_all_of_an_earlier_one(ledger: Ledger, reader: LedgerReader) -> None:
    first = pod("a", segment(1000, 1010), segment(1010, 1020), segment(1020, None))
    second = pod("a", segment(1000, 1015), revision=2, job="tune")

    ledger.write(step(first))
    ledger.write(step(second))

    assert all_segments(reader) == segments_of(second)


def test_a_revision_without_segments_removes_the_pod(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, None))))

    assert ledger.write(step(pod("a", revision=2))) == BALANCED
    assert all_segments(reader) == []


def test_revisions_may_be_skipped(ledger: Ledger, reader: LedgerReader) -> None:
    latest = pod("a", segment(1000, 1030), revision=7)

    ledger.write(step(pod("a", segment(1000, None))))

    assert ledger.write(step(latest)) == BALANCED
    assert all_segments(reader) == segments_of(latest)


def test_changes_written_twice_are_stored_once(back_end: BackEnd) -> None:
    record = pod("a", segment(1000, 1010), segment(1010, None))
    changes = everything(record)
    once = saved_by(back_end, changes)

    twice = saved_by(back_end, changes)

    with back_end.open() as ledger, back_end.read() as reader:
        assert all_segments(reader) == segments_of(record)
        assert ledger.write(changes) == BALANCED
    assert twice == once


def test_changes_may_be_written_again_merged_with_later_ones(ledger: Ledger, reader: LedgerReader) -> None:
    first = everything(pod("a", segment(1000, None)))
    second = step(pod("a", segment(1000, 1020), revision=2), pod("b", segment(1010, 1030)), at=1030)
    ledger.write(first)

    assert ledger.write(first.followed_by(second)) == BALANCED
    assert [(e.pod_uid, e.revision) for e in all_segments(reader)] == [("a", 2), ("b", 1)]


def everything(record: PodRecord) -> Changes:
    """Changes of every kind."""
    return step(
        record,
        pods={record.uid: record},
        nodes={NODE.uid: NODE},
        documents={("victim", PREEMPTED.victim_uid): PREEMPTED} | {("class-version", "low"): CLASS_VERSION},
        victims={PREEMPTED.victim_uid: PREEMPTED},
        series={(Total.ALLOCATED, ("a", "b")): Series(us(1000), a=5, b=6, floor=7, floor_us=8, shown_us=9)},
        known_values={("tier", "a"): KnownValue(5), ("tenant", "b"): KnownValue(6, 7)},
        resumes={Kind.PODS: Checkpoint(version="77", at_us=us(1000), rules="digest")},
        interruptions={(Kind.PODS, us(900)): us(950)},
    )


def test_the_saved_state_equals_what_was_written(back_end: BackEnd) -> None:
    record = pod("a", segment(1000, 1010), segment(1010, None, price=None))
    bare = pod("b", priority=None, owner=None, gap=None, end_by=None, end_us=None, terms=())
    changes = everything(record).followed_by(step(at=1234, pods={"b": bare}))

    assert saved_by(back_end, changes) == Saved(
        accounting_start_us=us(OPENED_S),
        evaluated_us=us(1234),
        at_us=us(1234),
        resumed_us=us(5000),
        pods=(record, bare),
        nodes=(NODE,),
        documents={"class-version": (CLASS_VERSION,), "victim": (PREEMPTED,)},
        series={key: each for key, each in changes.series.items() if each},
        known_values={("tier", "a"): KnownValue(5), ("tenant", "b"): KnownValue(6, 7)},
        resumes=dict(changes.resumes),
    )


def test_dropped_working_state_is_not_saved(back_end: BackEnd) -> None:
    gone = step(
        pods={"a": None},
        nodes={NODE.uid: None},
        documents={("victim", PREEMPTED.victim_uid): None} | {("class-version", "low"): None},
        at=1100,
    )

    saved = saved_by(back_end, everything(pod("a")), gone)

    assert (saved.pods, saved.nodes, saved.documents) == ((), (), {})
    assert saved.series
    assert saved.resumes


def test_later_working_state_replaces_earlier(back_end: BackEnd) -> None:
    other_node = NODE.__class__(uid=NODE.uid, name="n1", created_us=5, gone_us=99, facts=((5, FACTS), (50, FACTS)))
    moved = {Kind.PODS: Checkpoint(version="78", at_us=us(1001), rules="other")}

    saved = saved_by(back_end, everything(pod("a")), step(nodes={NODE.uid: other_node}, resumes=moved))

    assert saved.nodes == (other_node,)
    assert saved.resumes == moved


def test_counters_beyond_64_bits_are_exact(back_end: BackEnd) -> None:
    huge = Series(us(1000), a=-(10**30) - 1, b=10**25 + 3, floor=10**31 + 7, floor_us=us(1001), shown_us=None)

    saved = saved_by(back_end, step(series={(Total.COST, ("ä", "", '"x",')): huge}))

    assert saved.series == {(Total.COST, ("ä", "", '"x",')): huge}


def test_the_accounting_start_never_changes(back_end: BackEnd) -> None:
    later = Changes(accounting_start_us=us(2000), evaluated_us=us(2001), at_us=us(2002))

    saved = saved_by(back_end, step(), later)

    assert (saved.accounting_start_us, saved.evaluated_us, saved.at_us) == (us(OPENED_S), us(2001), us(2002))


def test_segments_add_up_to_the_live_line_through_revisions_and_restarts(back_end: BackEnd) -> None:
    before_opening = pod("old", segment(10, 900), segment(900, 1100))
    open_end, closed = pod("a", segment(1000, None)), pod("a", segment(1000, 1040), revision=2)

    with back_end.open() as ledger:
        assert ledger.write(step(before_opening, open_end)) == BALANCED
    with back_end.open() as ledger:
        assert ledger.write(step(closed, live=line(before_opening, closed))) == BALANCED


def test_without_a_live_line_nothing_is_compared(ledger: Ledger) -> None:
    assert ledger.write(step(pod("a", segment(1000, None)), live=None)) == {}


def test_a_live_line_that_differs_from_the_segments_is_reported(ledger: Ledger) -> None:
    record = pod("a", segment(1000, 1010))
    a, b = line(record)

    assert ledger.write(step(record, live=(a + 3, b - 4))) == {Total.ALLOCATED: (3, -4)}


@pytest.mark.parametrize(
    ("sql", "difference"),
    [
        ("UPDATE pod_segments SET quantity = quantity + 1 WHERE ordinal = 0", (us(10), 0)),
        ("UPDATE pod_segments SET end_us = end_us - 1000000 WHERE ordinal = 0", (-us(10**6), 0)),
        ("DELETE FROM pod_segments WHERE ordinal = 1", (us(1010) * 10**6, -(10**6))),
    ],
)
def test_a_row_changed_outside_the_ledger_shows_as_a_difference(
    back_end: BackEnd, sql: str, difference: tuple[int, int]
) -> None:
    with back_end.open() as ledger:
        assert ledger.write(step(pod("a", segment(1000, 1010), segment(1010, None)))) == BALANCED
    back_end.tamper(sql)
    ended = pod("a", segment(1000, 1010), segment(1010, 1020), revision=2)

    with back_end.open() as ledger:
        assert ledger.write(step(ended)) == {Total.ALLOCATED: difference}


def test_a_price_is_stored_once_and_shared_by_segments(ledger: Ledger, reader: LedgerReader) -> None:
    rated = pod("a", segment(1000, None))

    ledger.write(step(rated))
    ledger.write(step(pod("b", segment(1000, 1001))))

    assert [entry.segment.price for entry in all_segments(reader)] == [rated.segments[0].price] * 2


class Interrupted(Exception):
    """Interrupts a write."""


class InterruptingDict(dict[Any, Any]):
    """Raises when a write reaches it, which is last."""

    def items(self) -> Any:  # noqa: ANN401 - never returns
        raise Interrupted


def test_a_failed_write_stores_nothing(back_end: BackEnd) -> None:
    before = everything(pod("a", segment(1000, None)))
    was_saved = saved_by(back_end, before)
    rest = everything(pod("a", segment(1000, 1010), revision=2)).followed_by(
        step(pod("c", segment(1000, 1001)), at=1500)
    )
    failing = step(*rest.revisions.values(), at=1500, pods=rest.pods, series={}, resumes=InterruptingDict())

    with back_end.open() as ledger, back_end.read() as reader:
        with pytest.raises(Interrupted):
            ledger.write(failing)
        assert [(e.pod_uid, e.revision) for e in all_segments(reader)] == [("a", 1)]
        assert ledger.saved(now_us=us(5000)) == was_saved
        assert ledger.write(before) == BALANCED

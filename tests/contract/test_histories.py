"""For a growing history, a ledger receives only the new part and stores all of it."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from gputally.accounting.changes import Known
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.model.history import grown
from gputally.model.pod_record import PodRecord
from tests.contract.conftest import BackEnd
from tests.contract.records import BALANCED, TERMS, all_segments, line, pod, segment, segments_of, step, us


def long(count: int, *, revision: int, last: int | None = None) -> PodRecord:
    """A pod that changes its tenant every second."""
    cuts = [*range(1000, 1000 + count), last]
    parts = [segment(a, b, tenant=f"tenant-{a % 7}") for a, b in pairwise(cuts) if a is not None]
    terms = [replace(TERMS, from_us=us(1000 + i), tenant=f"tenant-{i}") for i in range(count)]
    record = pod("a", revision=revision)
    return replace(record, segments=grown((), 0, parts), terms=grown((), 0, terms))


@pytest.mark.parametrize("count", [3, 8, 9, 70, 300])
def test_a_revision_needs_only_the_part_that_differs(back_end: BackEnd, count: int) -> None:
    first, second = long(count, revision=1), long(count + 1, revision=2)
    known = {"a": Known(segments=count - 1, terms=count)}
    partial = replace(
        second, segments=(segment(1, 2),) * (count - 1) + tuple(second.segments[count - 1 :]), terms=second.terms
    )

    with back_end.open() as ledger, back_end.read() as reader:
        ledger.write(step(first, pods={"a": first}))
        live = line(second)
        assert ledger.write(step(partial, pods={"a": second}, known=known, live=live)) == BALANCED
        assert ledger.write(step(partial, pods={"a": second}, known=known, live=live)) == BALANCED
        assert all_segments(reader) == segments_of(second)
    with back_end.open() as ledger:
        assert ledger.saved(now_us=0).pods == (second,)


def test_changes_that_were_not_written_are_written_with_the_next_ones(ledger: Ledger, reader: LedgerReader) -> None:
    first, second, third = (long(count, revision=count) for count in (5, 9, 12))
    ledger.write(step(first, pods={"a": first}))
    unwritten = step(second, pods={"a": second}, known={"a": Known(segments=4, terms=5)})
    later = step(third, pods={"a": third}, known={"a": Known(segments=8, terms=9)})

    assert ledger.write(unwritten.followed_by(later)) == BALANCED
    assert all_segments(reader) == segments_of(third)
    assert ledger.saved(now_us=0).pods == (third,)


def test_an_end_observed_late_removes_the_segments_after_it(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(long(200, revision=1)))
    ended = long(150, revision=2, last=1150)

    assert ledger.write(step(ended, known={"a": Known(segments=149, terms=0)})) == BALANCED
    assert all_segments(reader) == segments_of(ended)

    later = long(152, revision=3)
    assert ledger.write(step(later, known={"a": Known(segments=149, terms=0)})) == BALANCED
    assert all_segments(reader) == segments_of(later)


def test_rows_missing_in_the_ledger_are_not_treated_as_known(ledger: Ledger, reader: LedgerReader) -> None:
    record = long(20, revision=5)

    assert ledger.write(step(record, known={"a": Known(segments=10, terms=10)})) == BALANCED
    assert all_segments(reader) == segments_of(record)

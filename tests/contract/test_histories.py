"""Of a history that grows, a ledger is told only what is new, and has all of it."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from gputally.accounting.changes import Known
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.model.history import grown
from gputally.model.pod import PodRecord
from tests.contract.conftest import BackEnd
from tests.contract.records import BALANCED, TERMS, line, pod, segment, segments_of, step, told, us


def long(count: int, *, revision: int, last: int | None = None) -> PodRecord:
    """A pod that changed its tenant every second."""
    cuts = [*range(1000, 1000 + count), last]
    parts = [segment(a, b, tenant=f"tenant-{a % 7}") for a, b in pairwise(cuts) if a is not None]
    terms = [replace(TERMS, from_us=us(1000 + i), tenant=f"tenant-{i}") for i in range(count)]
    record = pod("a", revision=revision)
    return replace(record, segments=grown((), 0, parts), terms=grown((), 0, terms))


@pytest.mark.parametrize("count", [3, 8, 9, 70, 300])
def test_of_a_revision_only_what_differs_need_be_told_again(back_end: BackEnd, count: int) -> None:
    first, second = long(count, revision=1), long(count + 1, revision=2)
    known = {"a": Known(segments=count - 1, terms=count)}
    untold = replace(
        second, segments=(segment(1, 2),) * (count - 1) + tuple(second.segments[count - 1 :]), terms=second.terms
    )

    with back_end.open() as ledger, back_end.read() as reader:
        ledger.write(step(first, pods={"a": first}))
        live = line(second)
        assert ledger.write(step(untold, pods={"a": second}, known=known, live=live)) == BALANCED
        assert ledger.write(step(untold, pods={"a": second}, known=known, live=live)) == BALANCED
        assert told(reader) == segments_of(second)
    with back_end.open() as ledger:
        assert ledger.saved(now_us=0).pods == (second,)


def test_what_was_told_before_a_step_that_was_not_written_is_told_with_the_next(
    ledger: Ledger, reader: LedgerReader
) -> None:
    first, second, third = (long(count, revision=count) for count in (5, 9, 12))
    ledger.write(step(first, pods={"a": first}))
    unwritten = step(second, pods={"a": second}, known={"a": Known(segments=4, terms=5)})
    later = step(third, pods={"a": third}, known={"a": Known(segments=8, terms=9)})

    assert ledger.write(unwritten.followed_by(later)) == BALANCED
    assert told(reader) == segments_of(third)
    assert ledger.saved(now_us=0).pods == (third,)


def test_an_end_that_comes_to_light_late_replaces_what_it_cut_off(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(long(200, revision=1)))
    ended = long(150, revision=2, last=1150)

    assert ledger.write(step(ended, known={"a": Known(segments=149, terms=0)})) == BALANCED
    assert told(reader) == segments_of(ended)

    later = long(152, revision=3)
    assert ledger.write(step(later, known={"a": Known(segments=149, terms=0)})) == BALANCED
    assert told(reader) == segments_of(later)


def test_what_the_ledger_does_not_have_is_not_taken_for_known(ledger: Ledger, reader: LedgerReader) -> None:
    record = long(20, revision=5)

    assert ledger.write(step(record, known={"a": Known(segments=10, terms=10)})) == BALANCED
    assert told(reader) == segments_of(record)

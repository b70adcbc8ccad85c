"""An allocation as segments of constant state, terms and price, and its revision: pure functions of the pod record.

Segments are recomputed only from the first change on, so frequent changes of a pod have constant cost.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.facts.lifetime import never_held
from gputally.accounting.facts.outcome import outcome_of
from gputally.model.allocation import Segment, State, Terms
from gputally.model.history import alike, grown
from gputally.model.pod_record import INCOMPLETE, PodRecord
from gputally.model.price import Price

Prices = Callable[[Terms, int, int | None], Iterable[tuple[int, Price | None]]]
"""The price under terms from one instant to another (None: now), with each change in between."""
ALWAYS = 0
_NEVER = 1 << 62
POD_READING = "6"
"""Raise this when classification or accounting of pods changes: a restart then reprocesses earlier records."""


class _Period(Struct, frozen=True, gc=False):
    """A period of constant state, terms and price, for all resources."""

    from_us: int
    state: State
    terms: Terms
    price: Price | None


def segments_of(
    record: PodRecord,
    before: PodRecord | None = None,
    *,
    since_us: int | None = None,
    until_us: int | None,
    prices: Prices,
) -> Sequence[Segment]:
    """The segments of `record`, by time and resource; none for a pod never bound, rejected or without terms.

    `before` is the record as accounted last; its segments are reused up to the first difference. Prices may have
    changed from `since_us` on. The allocation ends at `until_us` at the latest.
    """
    span = span_of(record, until_us)
    if span is None or not record.terms:
        return ()
    posted = before.segments if before else ()
    kept = 0
    if before and posted and posted[0].start_us == span[0]:
        changed_us = min(_changed_us(before, record, span[1]), _NEVER if since_us is None else since_us)
        kept = len(posted) if changed_us == _NEVER else bisect_left(posted, changed_us, key=_end_us)
    if kept and kept == len(posted):
        return posted
    start_us = posted[kept].start_us if kept else span[0]
    rest = start_us, span[1]
    periods = (None if posted else _first_periods(record, rest, prices)) or _periods(record, rest, prices)
    return grown(posted, kept, _segments(record, periods, span[1]))


def _changed_us(before: PodRecord, record: PodRecord, end_us: int | None) -> int:
    """The earliest time from which the segments of `record` may differ from those of `before` at equal prices."""
    if before.limited != record.limited:
        return ALWAYS
    ended_us = before.segments[-1].end_us
    pairs = [(before.started_us, record.started_us), (before.deletion_us, record.deletion_us), (ended_us, end_us)]
    changed = [at for was, now in pairs if was != now for at in (was, now) if at is not None]
    if before.gang_until_us != record.gang_until_us:
        changed += (before.gang_until_us or ALWAYS, record.gang_until_us or ALWAYS)
    if before.terms is not record.terms:
        kept = alike(before.terms, record.terms)
        changed += [each[kept].from_us if kept else ALWAYS for each in (before.terms, record.terms) if kept < len(each)]
    return min(changed, default=_NEVER)


def _end_us(segment: Segment) -> int:
    return _NEVER if segment.end_us is None else segment.end_us


def _segments(record: PodRecord, periods: Sequence[_Period], until_us: int | None) -> list[Segment]:
    found: list[Segment] = []
    for index, period in enumerate(periods, start=1):
        end_us = periods[index].from_us if index < len(periods) else until_us
        terms, state = period.terms, period.state
        labels = _with_state(terms.labels, state)
        for resource, quantity in held(record, terms):
            segment = Segment(
                resource=resource,
                start_us=period.from_us,
                end_us=end_us,
                state=state,
                quantity=quantity,
                tier=terms.tier,
                tenant=terms.tenant,
                queue=terms.queue,
                gpu_model=terms.gpu_model,
                pool=terms.pool,
                price=period.price,
                labels=labels,
            )
            found.append(segment)
    return found


def held(record: PodRecord, terms: Terms) -> tuple[tuple[str, int], ...]:
    """µGPU by resource that the pod holds under `terms`: its request, limited to the units its node ever offered."""
    if record.limited is None:
        return terms.quantities
    requested, offered = dict(record.units), dict(record.limited)
    return tuple((name, each // requested[name] * offered[name]) for name, each in terms.quantities if offered[name])


@lru_cache(maxsize=65_536)
def _with_state(labels: tuple[str, str, str], state: State) -> tuple[str, str, str, str]:
    """One shared tuple for thousands of similar pods."""
    return (*labels, state.value)


def _first_periods(record: PodRecord, span: tuple[int, int | None], prices: Prices) -> list[_Period] | None:
    """The periods of a new allocation under one term; None if its price changes.

    Prices that were never posted depend on the time alone, and no cut is later than now: if there is one price from
    start to end, it is that at each cut.
    """
    terms = record.terms[0]
    if len(record.terms) > 1:
        return None
    (_, price), *changes = prices(terms, *span)
    if changes:
        return None
    found: list[_Period] = []
    for from_us in _cuts(record, *span):
        state = _state_at(record, from_us)
        if not found or found[-1].state is not state:
            found.append(_Period(from_us, state, terms, price))
    return found


def _periods(record: PodRecord, span: tuple[int, int | None], prices: Prices) -> list[_Period]:
    """Equal neighbours are merged: a price change elsewhere creates no cut here."""
    found: list[_Period] = []
    cuts = _cuts(record, *span)
    for from_us, until_us in zip(cuts, (*cuts[1:], span[1]), strict=True):
        terms, state = terms_at(record, from_us), _state_at(record, from_us)
        for at_us, price in prices(terms, from_us, until_us):
            period = _Period(at_us, state, terms, price)
            if not found or not _continues(found[-1], period):
                found.append(period)
    return found


def _continues(before: _Period, after: _Period) -> bool:
    if (before.state, before.price) != (after.state, after.price):
        return False
    was, now = before.terms, after.terms
    return was is now or replace(was, from_us=now.from_us, asset=now.asset) == now


def span_of(record: PodRecord, until_us: int | None) -> tuple[int, int | None] | None:
    """[start, end) of the allocation in µs, with end None while it is active; None if nothing was ever held."""
    if record.scheduled_us is None or (record.end_by and never_held(record, record.end_by)):
        return None
    end_us = _earlier(record.end_us, until_us)
    if end_us is None:
        return record.scheduled_us, None
    return (record.scheduled_us, end_us) if end_us > record.scheduled_us else None


def _earlier(end_us: int | None, until_us: int | None) -> int | None:
    """The earlier of two ends, None for none."""
    if end_us is None or until_us is None:
        return until_us if end_us is None else end_us
    return min(end_us, until_us)


def _cuts(record: PodRecord, start_us: int, end_us: int | None) -> list[int]:
    """The start, and the instants at which state or terms change."""
    together_us = None if record.gang_until_us == INCOMPLETE else record.gang_until_us
    candidates = [record.started_us, together_us, record.deletion_us]
    if len(record.terms) > 1:
        first = bisect_right(record.terms, start_us, key=_from_us)
        candidates += [terms.from_us for terms in record.terms[first:]]
    cuts = [start_us]
    for at_us in sorted(filter(None, candidates)):
        if cuts[-1] < at_us and (end_us is None or at_us < end_us):
            cuts.append(at_us)
    return cuts


def _state_at(record: PodRecord, at_us: int) -> State:
    if record.deletion_us is not None and record.deletion_us <= at_us:
        return State.TERMINATING
    if record.started_us is not None and record.started_us <= at_us:
        return State.GANG_WAIT if at_us < (record.gang_until_us or 0) else State.RUNNING
    return State.STARTING


def terms_at(record: PodRecord, at_us: int) -> Terms:
    """The terms in effect at `at_us`; the first ones before they begin."""
    if len(record.terms) == 1:  # the usual case
        return record.terms[0]
    return record.terms[max(0, bisect_right(record.terms, at_us, key=_from_us) - 1)]


def _from_us(terms: Terms) -> int:
    return terms.from_us


def has_same_revision(before: PodRecord, record: PodRecord) -> bool:
    """Whether all fields of an allocation's revision are equal, apart from the segments."""
    return _revision_fields(before) == _revision_fields(record)


def counts_equally(before: PodRecord, record: PodRecord) -> bool:
    """Whether both have the same revision and count alike as jobs: a pod that has not ended does not.

    One that has ended may belong to a Job: whoever counts jobs decides.
    """
    if record.ending is None or record.counted is None:
        return record.ending is None and before.ending is None and has_same_revision(before, record)
    return before.counted is not None and has_same_revision(before, record)


def _revision_fields(record: PodRecord) -> tuple[object, ...]:
    times = record.scheduled_us, record.end_us, record.gap
    return record.node_uid, record.job, *times, record.result, outcome_of(record)

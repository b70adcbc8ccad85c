"""An allocation as segments of constant state, terms and price: a pure function of what is known of the pod.

It is derived anew only from where something changed: a pod that changes often costs the same each time.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.pods.lifetime import never_held
from gputally.model.allocation import Segment, State, Terms
from gputally.model.history import alike, grown
from gputally.model.pod import PodRecord
from gputally.model.price import Price

Prices = Callable[[Terms, int, int | None], Iterable[tuple[int, Price | None]]]
"""The price of what is held under terms from an instant on, and where it changes until another (None: until now)."""
ALWAYS = 0
_NEVER = 1 << 62


class _Stretch(Struct, frozen=True, gc=False):
    """Where neither state nor terms nor price change, whatever the resource."""

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

    `before` is the record as it was accounted last: up to where they differ, its segments stay as they are.
    `since_us` is from when on prices may have changed since. Whatever is known of its end, it ends by `until_us`.
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
    return grown(posted, kept, [*_segments(record, (start_us, span[1]), prices)])


def _changed_us(before: PodRecord, record: PodRecord, end_us: int | None) -> int:
    """From when on `record` may have other segments than `before`, if it is priced alike."""
    if before.limited != record.limited:
        return ALWAYS
    ended_us = before.segments[-1].end_us
    pairs = [(before.started_us, record.started_us), (before.deletion_us, record.deletion_us), (ended_us, end_us)]
    changed = [at for was, now in pairs if was != now for at in (was, now) if at is not None]
    if before.terms is not record.terms:
        kept = alike(before.terms, record.terms)
        changed += [each[kept].from_us if kept else ALWAYS for each in (before.terms, record.terms) if kept < len(each)]
    return min(changed, default=_NEVER)


def _end_us(segment: Segment) -> int:
    return _NEVER if segment.end_us is None else segment.end_us


def _segments(record: PodRecord, span: tuple[int, int | None], prices: Prices) -> Iterator[Segment]:
    stretches = _stretches(record, span, prices)
    ends = (*(stretch.from_us for stretch in stretches[1:]), span[1])
    for stretch, end_us in zip(stretches, ends, strict=True):
        for resource, quantity in held(record, stretch.terms):
            yield _segment(resource, quantity, stretch, end_us)


def held(record: PodRecord, terms: Terms) -> tuple[tuple[str, int], ...]:
    """µGPU by resource that the pod has under `terms`: what it asked for, or as many units as its node ever offered."""
    if record.limited is None:
        return terms.quantities
    asked, most = dict(record.units), dict(record.limited)
    return tuple((name, quantity // asked[name] * most[name]) for name, quantity in terms.quantities if most[name])


def _segment(resource: str, quantity: int, stretch: _Stretch, end_us: int | None) -> Segment:
    terms = stretch.terms
    return Segment(
        resource=resource,
        start_us=stretch.from_us,
        end_us=end_us,
        state=stretch.state,
        quantity=quantity,
        tier=terms.tier,
        tenant=terms.tenant,
        queue=terms.queue,
        gpu_model=terms.gpu_model,
        pool=terms.pool,
        price=stretch.price,
        labels=_with_state(terms.labels, stretch.state),
    )


@lru_cache(maxsize=65_536)
def _with_state(labels: tuple[str, str, str], state: State) -> tuple[str, str, str, str]:
    """The same tuple for all pods alike, which are thousands."""
    return (*labels, state.value)


def _stretches(record: PodRecord, span: tuple[int, int | None], prices: Prices) -> list[_Stretch]:
    """Neighbours that differ in nothing are one: a price change elsewhere cuts nothing here."""
    found: list[_Stretch] = []
    cuts = _cuts(record, *span)
    for from_us, until_us in zip(cuts, (*cuts[1:], span[1]), strict=True):
        terms, state = _terms_at(record, from_us), _state_at(record, from_us)
        for at_us, price in prices(terms, from_us, until_us):
            stretch = _Stretch(at_us, state, terms, price)
            if not found or not _continues(found[-1], stretch):
                found.append(stretch)
    return found


def _continues(before: _Stretch, after: _Stretch) -> bool:
    if (before.state, before.price) != (after.state, after.price):
        return False
    was, now = before.terms, after.terms
    return was is now or replace(was, from_us=now.from_us, asset=now.asset) == now


def span_of(record: PodRecord, until_us: int | None) -> tuple[int, int | None] | None:
    """[start, end) of the allocation in µs, end None while it lasts; None when nothing was ever held."""
    if record.scheduled_us is None or never_held(record, record.end_by):
        return None
    ends = [end for end in (record.end_us, until_us) if end is not None]
    end_us = max(min(ends), record.scheduled_us) if ends else None
    return None if end_us == record.scheduled_us else (record.scheduled_us, end_us)


def _cuts(record: PodRecord, start_us: int, end_us: int | None) -> list[int]:
    """The instants at which state or terms change, from the start on."""
    candidates = [record.started_us, record.deletion_us]
    if len(record.terms) > 1:
        first = bisect_right(record.terms, start_us, key=_from_us)
        candidates += [terms.from_us for terms in record.terms[first:]]
    return [start_us, *sorted({at for at in candidates if at and start_us < at and (end_us is None or at < end_us)})]


def _state_at(record: PodRecord, at_us: int) -> State:
    if record.deletion_us is not None and record.deletion_us <= at_us:
        return State.TERMINATING
    if record.started_us is not None and record.started_us <= at_us:
        return State.RUNNING
    return State.STARTING


def _terms_at(record: PodRecord, at_us: int) -> Terms:
    """The last terms that began by `at_us`; the first ones before that."""
    if len(record.terms) == 1:  # as nearly always
        return record.terms[0]
    return record.terms[max(0, bisect_right(record.terms, at_us, key=_from_us) - 1)]


def _from_us(terms: Terms) -> int:
    return terms.from_us

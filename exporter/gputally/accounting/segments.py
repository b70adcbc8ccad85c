"""An allocation as segments of constant state, terms and price: a pure function of what is known of the pod."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from gputally.accounting.lifetime import never_held
from gputally.model.allocation import Segment, State, Terms
from gputally.model.pod import PodRecord
from gputally.model.price import Asset, Price

PriceOf = Callable[[Asset, str, int], Price | None]
"""The price of an asset for a tier at an instant."""
Admit = Callable[[Terms], tuple[str, str, str]]
"""The exported (tier, tenant, gpu_model) of terms, bounded."""


class _Stretch(NamedTuple):
    """Where neither state nor terms nor price change, whatever the resource."""

    from_us: int
    state: State
    terms: Terms
    price: Price | None


def segments_of(
    record: PodRecord, *, gone_us: int | None, price_of: PriceOf, price_changes: tuple[int, ...], admit: Admit
) -> tuple[Segment, ...]:
    """The segments of `record`, by resource and time; none for a pod never bound, rejected or without terms.

    `gone_us` is when the pod's node ceased to exist: no allocation outlives its node. `price_changes`
    are the instants up to now at which any price changes.
    """
    span = span_of(record, gone_us)
    if span is None or not record.terms:
        return ()
    stretches = _stretches(record, span, price_of, price_changes)
    ends = (*(stretch.from_us for stretch in stretches[1:]), span[1])
    return tuple(
        [
            _segment(resource, stretch, end_us, admit)
            for resource, _ in record.units
            for stretch, end_us in zip(stretches, ends, strict=True)
        ]
    )


def _segment(resource: str, stretch: _Stretch, end_us: int | None, admit: Admit) -> Segment:
    terms = stretch.terms
    return Segment(
        resource=resource,
        start_us=stretch.from_us,
        end_us=end_us,
        state=stretch.state,
        quantity=dict(terms.quantities).get(resource, 0),
        tier=terms.tier,
        tenant=terms.tenant,
        queue=terms.queue,
        gpu_model=terms.gpu_model,
        pool=terms.pool,
        price=stretch.price,
        labels=_with_state(admit(terms), stretch.state),
    )


@lru_cache(maxsize=65_536)
def _with_state(labels: tuple[str, str, str], state: State) -> tuple[str, str, str, str]:
    """The same tuple for all pods alike, which are thousands."""
    return (*labels, state.value)


def _stretches(
    record: PodRecord, span: tuple[int, int | None], price_of: PriceOf, price_changes: tuple[int, ...]
) -> list[_Stretch]:
    """Neighbours that differ in nothing are one: a price change elsewhere cuts nothing here."""
    found: list[_Stretch] = []
    for from_us in _cuts(record, price_changes, *span):
        terms = _terms_at(record, from_us)
        price = price_of(terms.asset, terms.tier, from_us)
        stretch = _Stretch(from_us, _state_at(record, from_us), terms, price)
        if not found or not _continues(found[-1], stretch):
            found.append(stretch)
    return found


def _continues(before: _Stretch, after: _Stretch) -> bool:
    if (before.state, before.price) != (after.state, after.price):
        return False
    was, now = before.terms, after.terms
    return was is now or replace(was, from_us=now.from_us, asset=now.asset) == now


def span_of(record: PodRecord, gone_us: int | None) -> tuple[int, int | None] | None:
    """[start, end) of the allocation in µs, end None while it lasts; None when nothing was ever held."""
    if record.scheduled_us is None or never_held(record, record.end_by):
        return None
    ends = [end for end in (record.end_us, gone_us) if end is not None]
    end_us = max(min(ends), record.scheduled_us) if ends else None
    return None if end_us == record.scheduled_us else (record.scheduled_us, end_us)


def _cuts(record: PodRecord, price_changes: tuple[int, ...], start_us: int, end_us: int | None) -> list[int]:
    """The instants at which anything may change, from the start on."""
    candidates = {record.started_us, record.deletion_us, *[terms.from_us for terms in record.terms], *price_changes}
    return [start_us, *sorted([at for at in candidates if at and start_us < at and (end_us is None or at < end_us)])]


def _state_at(record: PodRecord, at_us: int) -> State:
    if record.deletion_us is not None and record.deletion_us <= at_us:
        return State.TERMINATING
    if record.started_us is not None and record.started_us <= at_us:
        return State.RUNNING
    return State.STARTING


def _terms_at(record: PodRecord, at_us: int) -> Terms:
    """The last terms that began by `at_us`; the first ones before that."""
    found = record.terms[0]
    for terms in record.terms:
        if terms.from_us <= at_us:
            found = terms
    return found


def alike(old: Sequence[Segment], new: Sequence[Segment]) -> int:
    """How many segments both begin with."""
    for index, (was, now) in enumerate(zip(old, new, strict=False)):
        if was != now:
            return index
    return min(len(old), len(new))

"""An allocation as segments of constant state, terms and price: a pure function of what is known of the pod."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from gputally.accounting.lifetime import never_held
from gputally.model.allocation import Segment, State, Terms
from gputally.model.pod import PodRecord
from gputally.model.price import Asset, Price

PriceOf = Callable[[Asset, str, int], Price | None]
"""The price of an asset for a tier at an instant."""
Admit = Callable[[Terms], tuple[str, str, str]]
"""The exported (tier, tenant, gpu_model) of terms, bounded."""


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
    start_us, end_us = span
    instants = sorted(_cuts(record, price_changes, start_us, end_us))
    pieces: list[Segment] = []
    for resource, _ in record.units:
        for i, from_us in enumerate(instants):
            to_us = instants[i + 1] if i + 1 < len(instants) else end_us
            terms = _terms_at(record, from_us)
            quantity = dict(terms.quantities).get(resource, 0)
            state = _state_at(record, from_us)
            pieces.append(
                Segment(
                    resource=resource,
                    start_us=from_us,
                    end_us=to_us,
                    state=state,
                    quantity=quantity,
                    tier=terms.tier,
                    tenant=terms.tenant,
                    queue=terms.queue,
                    gpu_model=terms.gpu_model,
                    pool=terms.pool,
                    price=price_of(terms.asset, terms.tier, from_us),
                    labels=(*admit(terms), state.value),
                )
            )
    return tuple(_merged(pieces))


def span_of(record: PodRecord, gone_us: int | None) -> tuple[int, int | None] | None:
    """[start, end) of the allocation in µs, end None while it lasts; None when nothing was ever held."""
    if record.scheduled_us is None or never_held(record, record.end_by):
        return None
    ends = [end for end in (record.end_us, gone_us) if end is not None]
    end_us = max(min(ends), record.scheduled_us) if ends else None
    return None if end_us == record.scheduled_us else (record.scheduled_us, end_us)


def _cuts(record: PodRecord, price_changes: tuple[int, ...], start_us: int, end_us: int | None) -> Iterator[int]:
    yield start_us
    candidates = {record.started_us, record.deletion_us, *(t.from_us for t in record.terms), *price_changes}
    for instant in candidates:
        if instant is not None and start_us < instant and (end_us is None or instant < end_us):
            yield instant


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


def _merged(pieces: list[Segment]) -> Iterator[Segment]:
    """Neighbours that differ in nothing become one: a price change elsewhere cuts nothing here."""
    pending: Segment | None = None
    for piece in pieces:
        if pending and _continues(pending, piece):
            pending = replace(pending, end_us=piece.end_us)
            continue
        if pending:
            yield pending
        pending = piece
    if pending:
        yield pending


def _continues(before: Segment, after: Segment) -> bool:
    return before.end_us == after.start_us and replace(after, start_us=before.start_us, end_us=before.end_us) == before

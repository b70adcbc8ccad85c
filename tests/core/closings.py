"""Closes periods of a ledger as the aggregator does."""

from collections import Counter

from msgspec.structs import replace

from gputally.ledger.closed_period import ClosedPeriod, LineKey
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import Window
from gputally.reports.closing import draft_period


def completed(draft: ClosedPeriod, *, closed_us: int = 1) -> ClosedPeriod:
    """With what the aggregator adds to a draft."""
    period = replace(draft, closed_us=closed_us, version="1.2.3", price_book="0123456789abcdef")
    return replace(period, hash=period.computed_hash())


def close(ledger: Ledger, reader: LedgerReader, window: Window, *, name: str = "") -> ClosedPeriod:
    """Close the period as it is now."""
    draft = draft_period(reader, name=name or f"{window.start_us}/{window.end_us}", window=window, zone="UTC")
    period = completed(draft)
    ledger.close_period(period)
    return period


def truth(reader: LedgerReader, window: Window) -> Counter[LineKey]:
    """The GPU-time of each line, from single segments."""
    sums = Counter[LineKey]()
    for each in reader.segments(window):
        s = each.segment
        labels = s.tenant, s.tier, s.queue, s.gpu_model, s.pool, s.resource, s.state.value
        sums[LineKey(labels, s.price)] += s.quantity * ((s.end_us or 0) - s.start_us)
    return sums

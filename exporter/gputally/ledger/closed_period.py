"""Closed periods: what was invoiced, as a chain in which every period has the hash of the one before."""

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from msgspec import Struct

from gputally.ledger.price_columns import PRICE, price_columns, price_of
from gputally.model.price import Price

LINE_DIMENSIONS: Final = ("tenant", "tier", "queue", "gpu_model", "pool", "resource", "state")
"""The dimensions of allocated time that closed lines keep, besides the price with its purchase option."""
_PRICE: Final = ("price_key", *PRICE)
PERIOD_COLUMNS: Final = (
    *("number", "name", "start_us", "end_us", "zone", "cluster", "closed_us", "accounted_us", "version"),
    *("price_book", "previous"),
)
"""The names of what the hash covers of a period, in its order."""
LINE_COLUMNS: Final = ("of_period", *LINE_DIMENSIONS, *_PRICE, "gpu_time")
"""The names of what it covers of a line, in its order."""


class LineKey(NamedTuple):
    """What a closed line adds up: the values of LINE_DIMENSIONS, and the price (None if unpriced)."""

    labels: tuple[str, ...]
    price: Price | None


class ClosedLine(Struct, frozen=True, kw_only=True):
    """Exact GPU-time (µs·µGPU) of one period.

    `of` is the number of that period: the one that the line belongs to, or an earlier one that it corrects. Then it is
    what came later, and may be negative.
    """

    of: int
    key: LineKey
    gpu_time: int

    @property
    def fields(self) -> tuple[int | str, ...]:
        """The values of LINE_COLUMNS; GPU-time as text, since it outgrows the integers of most programs."""
        return self.of, *self.key.labels, *_price_fields(self.key.price), str(self.gpu_time)


def line_of(fields: Sequence[Any]) -> ClosedLine:
    """The line with these values of LINE_COLUMNS. Raises: ValueError, ArithmeticError for impossible ones."""
    of, *values, gpu_time = fields
    labels, price = values[: len(LINE_DIMENSIONS)], values[len(LINE_DIMENSIONS) :]
    return ClosedLine(of=of, key=LineKey(tuple(labels), price_of(*price) if price[0] else None), gpu_time=int(gpu_time))


def _price_fields(price: Price | None) -> tuple[str, ...]:
    if price is None:
        return ("",) * len(_PRICE)
    return price.key, *price_columns(price)


class ClosedPeriod(Struct, frozen=True, kw_only=True):
    """A period as it was closed. Times are µs since the epoch.

    `number` counts from 1. `zone` is that of the calendar that `name` refers to. The ledger was complete up to
    `accounted_us` when its `lines` were read. `version` is that of gputally, `price_book` the digest of the price book
    it used then, empty without one. `previous` is the hash of the period before, empty for the first.
    """

    number: int
    name: str
    start_us: int
    end_us: int
    zone: str
    cluster: str
    closed_us: int
    accounted_us: int
    version: str
    price_book: str
    previous: str
    lines: tuple[ClosedLine, ...]
    hash: str = ""

    @property
    def fields(self) -> tuple[int | str, ...]:
        """The values of PERIOD_COLUMNS."""
        return tuple(getattr(self, name) for name in PERIOD_COLUMNS)

    def computed_hash(self) -> str:
        """SHA-256 over a JSON array of `fields`, and one of each line in the order of their texts."""
        lines = sorted(json.dumps(line.fields) for line in self.lines)
        return sha256("\n".join((json.dumps(self.fields), *lines)).encode()).hexdigest()


class BrokenChain(NamedTuple):
    """The number of the first period that cannot be trusted, and what is wrong with it."""

    number: int
    text: str


def broken_chain(periods: Sequence[ClosedPeriod]) -> BrokenChain | None:
    """Where a period was changed, added or removed after it was closed; None if none was.

    That the last ones were removed shows only by comparison with a hash that is kept elsewhere.
    """
    previous = ""
    for number, period in enumerate(periods, 1):
        if period.number != number or period.previous != previous:
            text = f"closed period {period.name} does not follow the one before it: one was removed or replaced"
            return BrokenChain(period.number, text)
        if period.computed_hash() != period.hash:
            return BrokenChain(number, f"closed period {period.name} was changed: its hash differs")
        previous = period.hash
    return None


def sums_of(periods: Sequence[ClosedPeriod]) -> Counter[tuple[int, LineKey]]:
    """The GPU-time of each period by its number and line, with all corrections."""
    sums = Counter[tuple[int, LineKey]]()
    for period in periods:
        for line in period.lines:
            sums[line.of, line.key] += line.gpu_time
    return sums

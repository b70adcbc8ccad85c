"""Which periods are closed, and when."""

from msgspec import Struct

from gputally.model.billing.calendar_period import PeriodLength


class Closing(Struct, frozen=True, kw_only=True, cache_hash=True):
    """The aggregator closes each period of length `period`, `after_us` (µs) after its end, and those in `closed`.

    `zone` is that of their calendar. The periods in `closed` do not overlap; they close at their end.
    """

    period: PeriodLength | None = None
    zone: str = "UTC"
    after_us: int = 0
    closed: tuple[str, ...] = ()

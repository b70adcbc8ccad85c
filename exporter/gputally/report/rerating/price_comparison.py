"""What the lines of a period cost at two prices."""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from gputally.report.rerating.rated_time import RatedTime


class RatedLine(Struct, kw_only=True):
    """All time with the same labels and currency before, or without a price before.

    Times are in µs·µGPU, costs see `COST_UNIT`. Unpriced time costs nothing; `compared` has both prices. `newly_priced`
    is the cost after of time that had no price before, and `no_longer_priced` the cost before of time that has none
    after. The price of `estimated` time is not certain: it may depend on facts that the ledger does not have.
    """

    labels: tuple[str, ...]
    currency: str
    gpu_time: int = 0
    unpriced_before: int = 0
    unpriced_after: int = 0
    estimated: int = 0
    compared: int = 0
    before: int = 0
    after: int = 0
    newly_priced: int = 0
    no_longer_priced: int = 0

    @property
    def compared_before(self) -> int:
        """The cost before of time that has both prices."""
        return self.before - self.no_longer_priced

    @property
    def compared_after(self) -> int:
        """The cost after of time that has both prices."""
        return self.after - self.newly_priced

    @property
    def difference(self) -> int:
        """Of the cost of time that has both prices. Of no meaning if they are in different currencies."""
        return self.compared_after - self.compared_before

    def add(self, time: RatedTime) -> None:
        """Add some time."""
        before = time.before.cost(time.gpu_time) if time.before else 0
        after = time.after.cost(time.gpu_time) if time.after else 0
        self.gpu_time += time.gpu_time
        self.unpriced_before += time.gpu_time * (time.before is None)
        self.unpriced_after += time.gpu_time * (time.after is None)
        self.estimated += time.gpu_time * time.is_estimated
        self.compared += time.gpu_time * (time.before is not None and time.after is not None)
        self.before += before
        self.after += after
        self.newly_priced += after * (time.before is None)
        self.no_longer_priced += before * (time.after is None)


class PriceComparison(Struct, frozen=True, kw_only=True):
    """Lines, the largest difference first, and a total for each currency before; `currency` is that of costs after.

    Of the estimated time, `guessed` is on nodes that were never observed, `changed_days` is that of days of which only
    the sum is left and in which a price changed, and `unknown_keys` is what depends on node labels that the ledger may
    not have stored, by label key.
    """

    lines: tuple[RatedLine, ...]
    totals: tuple[RatedLine, ...]
    currency: str
    guessed: int
    changed_days: int
    unknown_keys: Mapping[str, int]


def compare_prices(times: Iterable[RatedTime], *, currency: str) -> PriceComparison:
    """Adds up rated time.

    Time that was unpriced before belongs to the only currency before, or else to `currency`, if nothing was priced.
    """
    found = list(times)
    currencies = sorted({each.before.currency for each in found if each.before}) or [currency]
    home = currencies[0] if len(currencies) == 1 else ""
    lines, totals = dict[tuple[tuple[str, ...], str], RatedLine](), dict[str, RatedLine]()
    unknown_keys = Counter[str]()
    for each in found:
        name = each.before.currency if each.before else home
        lines.setdefault((each.labels, name), RatedLine(labels=each.labels, currency=name)).add(each)
        totals.setdefault(name, RatedLine(labels=(), currency=name)).add(each)
        unknown_keys.update(dict.fromkeys(each.unknown_keys, each.gpu_time))
    return PriceComparison(
        lines=tuple(sorted(lines.values(), key=_order)),
        totals=tuple(totals[name] for name in sorted(totals)),
        currency=currency,
        guessed=sum(each.gpu_time for each in found if each.is_guessed),
        changed_days=sum(each.gpu_time for each in found if each.is_of_changed_day),
        unknown_keys=dict(sorted(unknown_keys.items())),
    )


def _order(line: RatedLine) -> tuple[str, int, int, int, tuple[str, ...]]:
    return line.currency, -abs(line.difference), -line.before, -line.gpu_time, line.labels

"""Posts time that has accrued as lines, and its cost."""

from gputally.accounting.totals.netting import Netting
from gputally.accounting.totals.total import Total
from gputally.accounting.totals.totals import Totals


def post_priced(totals: Totals, lines: Netting, *, time: Total, cost: Total, unpriced: Total) -> None:
    """Add what has accrued since the last call to the family of `time`, and to that of `cost` or of what has none."""
    for labels, price, a, b, at_us in lines.drain():
        totals.shift(time, labels, a, b, at_us=at_us)
        if price is None:
            totals.shift(unpriced, labels, a, b, at_us=at_us)
        else:
            totals.shift(cost, (*labels, price.currency), price.cost(a), price.cost(b), at_us=at_us)

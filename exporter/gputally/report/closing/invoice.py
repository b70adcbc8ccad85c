"""Bills of closed periods, from their stored lines alone."""

from collections.abc import Sequence
from typing import Final

from gputally.ledger.closed_period import LINE_DIMENSIONS, ClosedLine, ClosedPeriod
from gputally.report.bill import Bill, bill_of
from gputally.report.cells import Cell

INVOICE_DIMENSIONS: Final = ("tenant", "tier", "queue", "gpu_model", "pool", "resource", "purchase")
"""What rows of an invoice can stand for."""
_UNPRICED: Final = ""


def invoice_of(period: ClosedPeriod, closed: Sequence[ClosedPeriod], by: Sequence[str]) -> Bill:
    """What the period was closed with; the first label of a row is the period that its GPU-time belongs to.

    Rows of the period itself come first, then the corrections of each earlier one. `closed` are all closed periods.
    """
    names = {each.number: each.name for each in (*closed, period)}
    places = {name: number for number, name in names.items()}
    bill = bill_of(_cell(line, names[line.of], by) for line in period.lines)
    ordered = sorted(bill.lines, key=lambda line: (line.currency, -places[line.labels[0]]))
    return Bill(tuple(ordered), bill.totals)


def _cell(line: ClosedLine, name: str, by: Sequence[str]) -> Cell:
    key = line.key
    values = dict(zip(LINE_DIMENSIONS, key.labels, strict=True))
    values["purchase"] = key.price.purchase.value if key.price else _UNPRICED
    return Cell(
        labels=(name, *(values[each] for each in by)),
        state=values["state"],
        price=key.price,
        gpu_time=line.gpu_time,
    )

"""Closed periods: which one is next, its lines with the corrections of earlier ones, its document and its bill."""

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any, Final, NamedTuple

from msgspec import json

from gputally.errors import LedgerDamaged, LedgerError
from gputally.ledger.closed_period import (
    LINE_COLUMNS,
    LINE_DIMENSIONS,
    PERIOD_COLUMNS,
    ClosedLine,
    ClosedPeriod,
    LineKey,
    broken_chain,
    line_of,
    sums_of,
)
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import Window
from gputally.model.periods import Closing, days_of, name_of, named_days
from gputally.model.units import to_datetime
from gputally.reports.bill import Bill, bill_of
from gputally.reports.cells import Cell
from gputally.reports.windows import days_window

_UNPRICED: Final = ""
VERSION: Final = 1
"""Raised when a field is removed or changes its meaning; new fields do not change it."""


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


class NextPeriod(NamedTuple):
    """A period to close at `due_us` (µs) at the earliest."""

    name: str
    window: Window
    due_us: int


def next_period(closing: Closing, *, zone: tzinfo, start_us: int, last_us: int | None) -> NextPeriod | None:
    """The period to close next, since periods close in order.

    `start_us` is the accounting start, and `last_us` the end of the last closed period, if there is one.
    """
    after_us = max(start_us, last_us or 0)
    found = [_named(name, zone) for name in closing.closed]
    candidates = [each for each in found if each.window.end_us > after_us and each.window.start_us >= (last_us or 0)]
    if closing.period:
        candidates.append(_scheduled(closing, zone, after_us, is_first=last_us is None))
    return min(candidates, key=lambda each: each.window, default=None)


def unclosable(closing: Closing, closed: Sequence[ClosedPeriod], *, zone: tzinfo, start_us: int) -> list[str]:
    """The named periods that will not be closed: over before the accounting start, or begun before the last closed end.

    `closed` are all closed periods, and `start_us` is the accounting start.
    """
    names, last_us = {each.name for each in closed}, max((each.end_us for each in closed), default=0)
    windows = {name: _named(name, zone).window for name in closing.closed if name not in names}
    return [name for name, window in windows.items() if window.start_us < last_us or window.end_us <= start_us]


def _named(name: str, zone: tzinfo) -> NextPeriod:
    window = days_window(named_days(name), zone)
    return NextPeriod(name, window, window.end_us)


def _scheduled(closing: Closing, zone: tzinfo, after_us: int, *, is_first: bool) -> NextPeriod:
    """The calendar period that contains `after_us`; without the part that is closed already."""
    assert closing.period
    since = to_datetime(after_us).astimezone(zone)
    days = days_of(closing.period, since.date())
    window = days_window(days, zone)
    name = name_of(days)
    if not is_first and window.start_us < after_us:
        window, name = Window(after_us, window.end_us), f"{_edge(since)}/{days[1]}"
    return NextPeriod(name, window, window.end_us + closing.after_us)


def _edge(at: datetime) -> str:
    """A date if it is midnight."""
    return f"{at.date()}" if at.time() == at.min.time() else at.isoformat()


def draft_period(reader: LedgerReader, *, name: str, window: Window, zone: str) -> ClosedPeriod:
    """The period as the ledger has it now, to be closed next: not closed yet, without version, price book and hash.

    Its lines are its own totals, and for each closed period what the ledger has now that neither that period nor later
    corrections have.

    Raises: LedgerDamaged if one was changed; LedgerError, also if it overlaps a closed period or is not accounted to
    its end.
    """
    state, closed = reader.state(), reader.closed_periods()
    if broken := broken_chain(closed):
        raise LedgerDamaged(f"{broken.text}; compare it with a backup: docs/closing.md#verification")
    last = closed[-1] if closed else None
    if last and window.start_us < last.end_us:
        raise LedgerError(f"{name} begins before the end of {last.name}, which is closed; choose a later period")
    window = Window(max(window.start_us, state.accounting_start_us), window.end_us)
    if not window.start_us < window.end_us <= state.accounted_us:
        raise LedgerError(f"{name} is not accounted to its end yet, or was before the accounting start")
    number = len(closed) + 1
    windows = {each.number: Window(each.start_us, each.end_us) for each in closed} | {number: window}
    return ClosedPeriod(
        number=number,
        name=name,
        start_us=window.start_us,
        end_us=window.end_us,
        zone=zone,
        cluster=state.cluster or "",
        closed_us=0,
        accounted_us=state.accounted_us,
        version="",
        price_book="",
        previous=last.hash if last else "",
        lines=tuple(_lines(reader, windows, closed)),
    )


def _lines(reader: LedgerReader, windows: dict[int, Window], closed: Sequence[ClosedPeriod]) -> list[ClosedLine]:
    """What the ledger has of these periods, by number, minus what is closed of them. All are read at once."""
    missing = {key: -gpu_time for key, gpu_time in sums_of(closed).items()}
    edges = sorted({edge for window in windows.values() for edge in window})
    numbers = {window.start_us: number for number, window in windows.items()}
    of_period = [numbers.get(edge) for edge in edges]
    for each in reader.allocated(Window(edges[0], edges[-1]), LINE_DIMENSIONS, cuts=edges[1:-1]):
        if (number := of_period[each.period]) is not None:
            key = number, LineKey(each.labels, each.price)
            missing[key] = missing.get(key, 0) + each.gpu_time
    lines = (ClosedLine(of=of, key=key, gpu_time=gpu_time) for (of, key), gpu_time in missing.items() if gpu_time)
    return sorted(lines, key=lambda line: (-line.of, line.fields))


def document_of(period: ClosedPeriod) -> dict[str, Any]:
    """The document; GPU-time is text."""
    lines = [dict(zip(LINE_COLUMNS, line.fields, strict=True)) for line in period.lines]
    return {"version": VERSION, "period": header_of(period), "lines": lines}


def header_of(period: ClosedPeriod) -> dict[str, Any]:
    """The period without its lines."""
    return dict(zip(PERIOD_COLUMNS, period.fields, strict=True)) | {"hash": period.hash}


def period_in(document: bytes) -> ClosedPeriod:
    """The period of an encoded document."""
    content: dict[str, Any] = json.decode(document)
    lines = (line_of([line[name] for name in LINE_COLUMNS]) for line in content["lines"])
    return ClosedPeriod(**content["period"], lines=tuple(lines))

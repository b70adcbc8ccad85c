"""Lists the closed periods of a ledger, or shows the invoice of one."""

import sys
from collections.abc import Sequence

from msgspec import Struct

from gputally.commands.from_ledger.reading import LedgerFiles, time_zone
from gputally.commands.progress import ProgressLine, ending_at_once
from gputally.errors import ConfigError, LedgerDamaged, Problem
from gputally.formatting.formats import places
from gputally.ledger.closed_period import ClosedPeriod, broken_chain
from gputally.ledger.open import reading_once
from gputally.ledger.protocol import LedgerReader
from gputally.output.periods import Invoice, invoice_answer, list_answer
from gputally.output.writer import write_answer
from gputally.questions.own import PeriodNow
from gputally.reports.closing import draft_period
from gputally.reports.windows import parse_window


class PeriodOptions(Struct, frozen=True, kw_only=True):
    """The flags of the command; without `period`, all are listed."""

    period: str | None
    by: tuple[str, ...]
    preview: bool
    time_zone: str
    output: str
    decimals: int | None

    @property
    def places(self) -> int:
        """The decimals of amounts."""
        return places(self.output, self.decimals)


def periods(ledger: str, options: PeriodOptions) -> int:
    """Print the list or the invoice.

    Raises: LedgerDamaged, after it, if a closed period was changed; other LedgerErrors; ConfigError for a wrong period.
    """
    with ending_at_once(), reading_once(ledger) as reader, ProgressLine() as progress:
        progress("reading the ledger ...")
        closed = reader.closed_periods()
        broken = broken_chain(closed)
        chosen = _preview(reader, options) if options.preview else _chosen(closed, options.period)
    if chosen is None:
        answer = list_answer(closed, broken, places=options.places)
    else:
        answer = invoice_answer(Invoice(period=chosen, closed=closed, by=options.by, places=options.places))
    write_answer(sys.stdout, answer, output=options.output)
    sys.stdout.flush()
    if broken:
        raise LedgerDamaged(f"{broken.text}; compare it with a backup: docs/closing.md#verification")
    return 0


def show_period_now(question: PeriodNow, files: LedgerFiles) -> int:
    """Print a period for the aggregator, as it would be closed now. Raises: as `periods`."""
    options = PeriodOptions(
        period=question.name, by=(), preview=True, time_zone=question.time_zone, output="json", decimals=None
    )
    return periods(files.ledger, options)


def _chosen(closed: Sequence[ClosedPeriod], name: str | None) -> ClosedPeriod | None:
    if name is None:
        return None
    found = next((each for each in closed if each.name == name), None)
    if found is None:
        names = ", ".join(each.name for each in closed[-12:]) or "none"
        raise ConfigError([Problem("", "PERIOD", f"'{name}' is not closed; the latest closed periods are: {names}")])
    return found


def _preview(reader: LedgerReader, options: PeriodOptions) -> ClosedPeriod:
    if options.period is None:
        raise ConfigError([Problem("", "--preview", "needs a period, such as 2026-10")])
    try:
        window = parse_window(options.period, now_us=reader.state().accounted_us, zone=time_zone(options.time_zone))
    except ValueError as error:
        raise ConfigError([Problem("", "PERIOD", str(error))]) from None
    return draft_period(reader, name=options.period, window=window, zone=options.time_zone)

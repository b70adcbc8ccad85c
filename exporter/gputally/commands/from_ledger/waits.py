"""Reports how long pods waited for GPUs in a period."""

import sys

from msgspec import Struct

from gputally.commands.from_ledger.reading import matched, reading_scope
from gputally.commands.progress import ProgressLine, ending_at_once
from gputally.commands.scope_flags import ScopeOptions
from gputally.ledger.records import Records
from gputally.output.answer import PLACES
from gputally.output.waits import WaitReport, waits_answer
from gputally.output.writer import write_answer
from gputally.reports.choices import TIME_DIMENSIONS
from gputally.reports.waits import WaitQuery, read_waits, wait_rows


class WaitOptions(Struct, frozen=True, kw_only=True):
    """The flags of the command."""

    scope: ScopeOptions
    by: tuple[str, ...]
    tiers_only: bool
    top: int | None
    decimals: int | None
    output: str

    @property
    def places(self) -> int:
        """The decimals of amounts."""
        return PLACES[self.output] if self.decimals is None else self.decimals


def report_waits(options: WaitOptions) -> int:
    """Print them. Raises: LedgerError, and ConfigError for a wrong period or time zone."""
    reading = reading_scope(options.scope, records=Records.WAITS)
    with ending_at_once(), ProgressLine() as progress, reading as (reader, period):
        progress("reading the ledger ...")
        query = WaitQuery(period.query, options.by, options.tiers_only)
        times = [place for place, column in enumerate(query.columns) if column in TIME_DIMENSIONS]
        found = [
            rows
            for each in read_waits(reader, query)
            for rows in wait_rows(each, places=options.places, top=options.top, time_columns=times)
        ]
        scope = matched(reader, period, is_empty=not found)
        progress("")
        report = WaitReport(scope=scope, query=query, found=found)
        write_answer(sys.stdout, waits_answer(report), output=options.output)
        sys.stdout.flush()
        if options.output == "csv":
            sys.stderr.writelines(f"gputally: {note}\n" for note in scope.warnings)
    return 0

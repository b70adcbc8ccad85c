"""Reports how long pods waited for GPUs in a period."""

import sys

from gputally.commands.from_ledger.reading import LedgerFiles, matched, reading_scope
from gputally.commands.progress import ProgressLine, ending_at_once
from gputally.formatting.formats import places
from gputally.ledger.records import Records
from gputally.output.waits import WaitReport, waits_answer
from gputally.output.writer import write_answer
from gputally.questions.waits import Waits
from gputally.reports.choices import TIME_DIMENSIONS
from gputally.reports.waits import WaitQuery, read_waits, wait_rows


def report_waits(question: Waits, files: LedgerFiles) -> int:
    """Print them. Raises: LedgerError, and InvalidQuestion for a wrong period or time zone."""
    reading = reading_scope(question, files, records=Records.WAITS)
    with ending_at_once(), ProgressLine() as progress, reading as (reader, period):
        progress("reading the ledger ...")
        query = WaitQuery(period.query, question.by, question.tiers_only)
        times = [place for place, column in enumerate(query.columns) if column in TIME_DIMENSIONS]
        found = [
            rows
            for each in read_waits(reader, query)
            for rows in wait_rows(
                each, places=places(question.output, question.decimals), top=question.top, time_columns=times
            )
        ]
        scope = matched(reader, period, is_empty=not found)
        progress("")
        report = WaitReport(scope=scope, query=query, found=found)
        write_answer(sys.stdout, waits_answer(report), output=question.output)
        sys.stdout.flush()
        if question.output == "csv":
            sys.stderr.writelines(f"gputally: {note}\n" for note in scope.warnings)
    return 0

"""`gputally import`: jobs of the time before the installation."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from gputally.accounting.prices.pricing import Pricing
from gputally.config.read import read_files
from gputally.errors import ConfigError, Problem
from gputally.importing.import_jobs import Counts, Plan, import_jobs, window_of
from gputally.importing.imported_job import JobClassifier
from gputally.importing.job_file import FORMATS, jobs_of
from gputally.importing.row_cells import Rejected, TimeBase
from gputally.ledger.open import open_import_ledger
from gputally.ledger.records import Window
from gputally.ledger_commands.import_output import ImportOutput, finish_import
from gputally.ledger_commands.progress_line import ProgressLine, ending_cleanly
from gputally.ledger_commands.report.report_scope import time_zone
from gputally.model.units import to_us


class ImportOptions(Struct, frozen=True, kw_only=True):
    """The flags of the command."""

    file: Path
    ledger: str
    format: str
    config: Path | None
    prices: Path | None
    zero: str | None
    time_zone: str
    until: str | None
    source: str
    rejected: Path | None


def import_file(options: ImportOptions) -> int:
    """Import the file. Raises: LedgerError, and ConfigError for wrong files or flags, before anything is imported."""
    rules, book = read_files(options.config, options.prices, with_budgets=False)
    base, form = _base(options), FORMATS[options.format]
    with ending_cleanly(), ProgressLine() as progress:
        progress("reading the file ...")
        window = window_of(jobs_of(options.file, form, base))
        if window is None:
            text = "has no job that had GPUs; see 'gputally import --help' for its columns"
            return _finish(options, _only_rejected(jobs_of(options.file, form, base)), text)
        pricing = Pricing(book, now_us=window.end_us)
        plan = Plan(
            classifier=JobClassifier(source=options.source, rules=rules, pricing=pricing),
            window=Window(window.start_us, _until_us(options, base) or window.end_us),
            terms=f"{rules.digest} {book.digest if book else ''}",
        )
        counts = Counts()
        with open_import_ledger(options.ledger) as ledger:
            for counts in import_jobs(ledger, jobs_of(options.file, form, base), plan):
                progress(f"{counts.imported:,} jobs ...")
    return _finish(options, counts, "")


def _only_rejected(rows: Iterable[object]) -> Counts:
    found = list(rows)
    return Counts(
        rejected=[row for row in found if isinstance(row, Rejected)], without=sum(row is None for row in found)
    )


def _finish(options: ImportOptions, counts: Counts, problem: str) -> int:
    output = ImportOutput(str(options.file), "jobs", options.rejected, Rejected._fields)
    return finish_import(output, counts, problem)


def _base(options: ImportOptions) -> TimeBase:
    zone = time_zone(options.time_zone)
    return TimeBase(None if options.zero is None else _time_us(options.zero, TimeBase(None, zone), "zero"), zone)


def _until_us(options: ImportOptions, base: TimeBase) -> int | None:
    return None if options.until is None else _time_us(options.until, base, "until")


def _time_us(text: str, base: TimeBase, flag: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError([Problem("", f"--{flag}", f"'{text}' is not a time; use 2026-10-01T12:00:00")]) from None
    return to_us(time if time.tzinfo else time.replace(tzinfo=base.zone))

"""`gputally import`: jobs of the time before the installation."""

import csv
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from gputally.accounting.prices.pricing import Pricing
from gputally.config.read import read_files
from gputally.errors import ConfigError, Problem
from gputally.importing.import_jobs import Counts, Plan, import_jobs, window_of
from gputally.importing.imported_job import Classifier
from gputally.importing.job_file import FORMATS, jobs_of
from gputally.importing.row_cells import Rejected, TimeBase
from gputally.ledger.open import open_import_ledger
from gputally.ledger.records import Window
from gputally.ledger_commands.progress_line import ProgressLine, ending_cleanly
from gputally.ledger_commands.report.report_scope import time_zone
from gputally.model.units import to_us

_SHOWN: Final = 20
"""Rejected rows that are printed."""
_REJECTED_STATUS: Final = 9


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
            Classifier(source=options.source, rules=rules, pricing=pricing),
            Window(window.start_us, _until_us(options, base) or window.end_us),
            f"{rules.digest} {book.digest if book else ''}",
        )
        counts = Counts()
        with open_import_ledger(options.ledger) as ledger:
            for counts in import_jobs(ledger, jobs_of(options.file, form, base), plan):
                progress(f"{counts.new + counts.changed + counts.unchanged:,} jobs ...")
    return _finish(options, counts, "")


def _only_rejected(rows: Iterable[object]) -> Counts:
    found = list(rows)
    return Counts(
        rejected=[row for row in found if isinstance(row, Rejected)], without=sum(row is None for row in found)
    )


def _finish(options: ImportOptions, counts: Counts, problem: str) -> int:
    """Report the counts and rejected rows."""
    if options.rejected:
        with options.rejected.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([Rejected._fields, *counts.rejected])
    for each in counts.rejected[:_SHOWN]:
        sys.stderr.write(f"{options.file}: line {each.line}, {each.column}: {each.reason}\n")
    if (more := len(counts.rejected) - _SHOWN) > 0:
        sys.stderr.write(f"{options.file}: {more:,} more rejected rows; write all with --rejected FILE\n")
    if problem:
        sys.stderr.write(f"{options.file}: {problem}\n")
    sys.stdout.write(
        f"{counts.new:,} jobs new, {counts.changed:,} changed, {counts.unchanged:,} unchanged; "
        f"{counts.without:,} without GPUs or never started; {len(counts.rejected):,} rejected\n"
    )
    return _REJECTED_STATUS if counts.rejected or problem else 0


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

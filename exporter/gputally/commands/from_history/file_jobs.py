"""Imports jobs of the time before the installation from a file."""

import sys
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from gputally.accounting.prices.pricing import Pricing
from gputally.commands.from_history.result import NOT_ALL_STATUS, ImportOutput, finish_import
from gputally.commands.from_ledger.reading import time_zone
from gputally.commands.progress import ProgressLine, ending_cleanly
from gputally.config.read import read_files
from gputally.errors import ConfigError, Problem
from gputally.importing.import_jobs import Counts, Plan, import_jobs, window_of
from gputally.importing.imported_job import JobClassifier
from gputally.importing.job_file import CSV_DELIMITER, Format, JobFile, csv_format, sacct_format
from gputally.importing.row_cells import Rejected, TimeBase, readings
from gputally.importing.slurm_jobs import SlurmShares
from gputally.ledger.open_to_write import open_import_ledger
from gputally.ledger.records import Window
from gputally.model.printable import printable
from gputally.model.rules import Rules
from gputally.model.units import to_datetime


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
    delimiter: str | None
    shards_per_gpu: int | None
    mps_per_gpu: int | None
    trust_names: bool | None
    source: str
    rejected: Path | None


def import_file(options: ImportOptions) -> int:
    """Import the file. Raises: LedgerError, and ConfigError for wrong files or flags, before anything is imported."""
    rules, book = read_files(options.config, options.prices, with_budgets=False)
    base = _base(options)
    file = JobFile(options.file, _format(options, rules), base)
    with ending_cleanly(), ProgressLine() as progress:
        progress("reading the file ...")
        window = window_of(file.rows())
        if window is None:
            text = "has no job that had GPUs; see 'gputally import --help' for its columns"
            return _finish(options, file, _only_rejected(file.rows()), problem=text)
        pricing = Pricing(book, now_us=window.end_us)
        classifier = JobClassifier(source=options.source, rules=rules, pricing=pricing)
        plan = Plan(
            classifier=classifier,
            window=Window(window.start_us, _until_us(options, base, window)),
            terms=f"{rules.digest} {book.digest if book else ''}",
        )
        counts = Counts()
        with open_import_ledger(options.ledger) as ledger:
            if options.format == "sacct":
                ledger.expect_zone(options.source, options.time_zone)
            for counts in import_jobs(ledger, file.rows(), plan):
                progress(f"{counts.imported:,} jobs ...")
            for pods in ledger.add_up():
                progress(f"adding up, {pods:,} jobs ...")
    return _finish(options, file, counts)


def _format(options: ImportOptions, rules: Rules) -> Format:
    if options.format == "csv":
        return csv_format(options.delimiter or CSV_DELIMITER)
    shares = SlurmShares(
        mig_basis=rules.mig_basis, shards_per_gpu=options.shards_per_gpu, mps_per_gpu=options.mps_per_gpu
    )
    return sacct_format(shares, trusts_names=bool(options.trust_names))


def _only_rejected(rows: Iterable[object]) -> Counts:
    found = list(rows)
    return Counts(
        rejected=[row for row in found if isinstance(row, Rejected)], without=sum(row is None for row in found)
    )


def _finish(options: ImportOptions, file: JobFile, counts: Counts, *, problem: str = "") -> int:
    output = ImportOutput(str(options.file), "jobs", options.rejected, Rejected._fields)
    status = finish_import(output, counts, problem)
    for note in file.notes():
        sys.stderr.write(f"{options.file}: {printable(note)}\n")
    return status if file.is_certain else NOT_ALL_STATUS


def _base(options: ImportOptions) -> TimeBase:
    zone = time_zone(options.time_zone)
    return TimeBase(None if options.zero is None else _time_us(options.zero, TimeBase(None, zone), "zero"), zone)


def _until_us(options: ImportOptions, base: TimeBase, window: Window) -> int:
    """Up to when running jobs have run. Raises: ConfigError for a time before others of the file."""
    if options.until is None:
        return window.end_us
    if (until_us := _time_us(options.until, base, "until")) < window.end_us:
        last = f"the last time in the file, {to_datetime(window.end_us):%Y-%m-%dT%H:%M:%S} UTC"
        raise ConfigError([Problem("", "--until", f"{options.until} is before {last}")])
    return until_us


def _time_us(text: str, base: TimeBase, flag: str) -> int:
    try:
        first, *others = readings(text, base)
    except ValueError as error:
        raise ConfigError([Problem("", f"--{flag}", str(error))]) from None
    if others:
        problem = (
            f"{text} is ambiguous in {base.zone} (end of daylight saving time); add an offset, such as {text}+02:00"
        )
        raise ConfigError([Problem("", f"--{flag}", problem)])
    return first

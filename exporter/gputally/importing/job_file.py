"""Reads jobs from a file, row by row."""

import csv
import gzip
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple

from gputally.errors import ConfigError, Problem
from gputally.importing import csv_jobs, slurm_jobs
from gputally.importing.imported_job import ImportedJob
from gputally.importing.row_cells import CellError, Cells, Rejected, TimeBase


class Format(NamedTuple):
    """A kind of file: its `delimiter`, the columns that it must have, and how a row becomes a job."""

    delimiter: str
    columns: tuple[str, ...]
    job: Callable[[Cells], ImportedJob | None]


FORMATS: Final = {
    "csv": Format(",", csv_jobs.COLUMNS, csv_jobs.csv_job),
    "sacct": Format("|", slurm_jobs.COLUMNS, slurm_jobs.slurm_job),
}


def jobs_of(path: Path, form: Format, base: TimeBase) -> Iterator[ImportedJob | Rejected | None]:
    """One item for each row: the job, why it is rejected, or None if it had no GPU time.

    Raises: ConfigError if the file cannot be read, or lacks a column.
    """
    try:
        with _opened(path) as file:
            reader = csv.DictReader(file, delimiter=form.delimiter)
            _expect_columns(path, reader.fieldnames or (), form)
            known = set[int]()
            for cells in reader:
                yield _item(Cells(cells, base), reader.line_num, form, known)
    except OSError as error:  # includes gzip.BadGzipFile
        raise _unreadable(path, f"cannot be read: {error.strerror or error}") from None
    except (EOFError, UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(path, f"is not text in UTF-8 with one row a line: {error}") from None


def _item(cells: Cells, line: int, form: Format, known: set[int]) -> ImportedJob | Rejected | None:
    """`known` are the hashes of the IDs before: 60 bytes each."""
    try:
        job = form.job(cells)
    except CellError as error:
        return Rejected(line, error.column, error.reason)
    if job:
        if (number := hash(job.id)) in known:
            return Rejected(line, form.columns[0], f"{job.id} is in an earlier row too; every job has one row")
        known.add(number)
    return job


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def _expect_columns(path: Path, names: Collection[str], form: Format) -> None:
    if missing := [column for column in form.columns if column not in names]:
        text = f"has no column {', '.join(missing)}; it needs {', '.join(form.columns)}"
        raise ConfigError([Problem(str(path), "line 1", text)])


def _unreadable(path: Path, text: str) -> ConfigError:
    return ConfigError([Problem(str(path), "", text)])

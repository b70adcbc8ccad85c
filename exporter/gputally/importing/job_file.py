"""Reads jobs from a file, row by row."""

import csv
import gzip
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Final, NamedTuple

from gputally.errors import ConfigError, Problem
from gputally.importing import csv_jobs, slurm_jobs
from gputally.importing.imported_job import ImportedJob
from gputally.importing.row_cells import AmbiguousTime, CellError, Cells, Rejected, TimeBase, shown
from gputally.importing.slurm_jobs import SlurmShares
from gputally.model.units import GPU_HOUR

CSV_DELIMITER: Final = ","
_NAMED: Final = 20
"""Rows that notes name."""
_SACCT_HEADER: Final = re.compile(r"\w+(?P<delimiter>[^\w ,:=./\[\]+-]+)", re.ASCII)
"""What separates the columns of sacct, which its values do not contain."""
_NOT_UTF8: Final = re.compile("[\0\ud800-\udfff]")
_LINE_BREAK: Final = re.compile("[\r\n]")

_MOST_TEXT: Final = 1 << 17
"""Characters of a row of CSV over several lines: so much is read again after a quote that is never closed."""
Row = tuple[int, Sequence[str] | CellError]
"""The line where a row begins, and its cells, or why it has none."""


class Format(NamedTuple):
    """A kind of file: the columns that it must and may have, how a row becomes a job, and what rows say of other jobs.

    Texts in quotes may contain the `delimiter` (CSV); without one, the header shows it, and no text is quoted (sacct).
    Then users can forge rows by what they write into `free_texts`: a file with such columns is refused.
    """

    columns: tuple[str, ...]
    optional: tuple[str, ...]
    job: Callable[[Cells], ImportedJob | None]
    notes: Callable[[], list[str]]
    delimiter: str | None
    free_texts: tuple[str, ...] = ()


def csv_format(delimiter: str = CSV_DELIMITER) -> Format:
    """CSV files."""
    return Format(csv_jobs.COLUMNS, csv_jobs.OPTIONAL, csv_jobs.csv_job, list, delimiter)


def sacct_format(shares: SlurmShares, *, trusts_names: bool = False) -> Format:
    """The output of sacct, with names and other texts of users only if somebody `trusts_names`."""
    reader = slurm_jobs.SlurmJobs(shares)
    free_texts = () if trusts_names else slurm_jobs.FREE_TEXTS
    return Format(slurm_jobs.COLUMNS, slurm_jobs.OPTIONAL, reader.job, reader.notes, None, free_texts)


class JobFile:
    """A file of jobs. It may be read several times; `notes` are those of the last time."""

    def __init__(self, path: Path, form: Format, base: TimeBase) -> None:
        self._path = path
        self._form = form
        self._base = base
        self._ambiguous = _AmbiguousTimes(base)

    def rows(self) -> Iterator[ImportedJob | Rejected | None]:
        """One item for each row: the job, why it is rejected, or None if it had no GPU time.

        Raises: ConfigError if the file cannot be read, or lacks a column.
        """
        self._ambiguous = _AmbiguousTimes(self._base)
        try:
            with self._opened() as file:
                names, rows = self._table(file)
                known = set[int]()
                for line, cells in rows:
                    yield self._item(line, names, cells, known)
        except OSError as error:  # includes gzip.BadGzipFile
            raise self._problem(f"cannot be read: {error.strerror or error}") from None
        except (EOFError, zlib.error) as error:
            raise self._problem(f"is incomplete or damaged: {error}") from None

    @property
    def is_certain(self) -> bool:
        """Whether all imported times have one reading."""
        return not self._ambiguous.count

    def notes(self) -> list[str]:
        """What the result does not show."""
        return [*self._ambiguous.notes(), *self._form.notes()]

    @contextmanager
    def _opened(self) -> Iterator[IO[str]]:
        """The text without a BOM. Bytes that are not UTF-8 matter only in cells that are read."""
        newline = "\n" if self._form.delimiter is None else ""  # sacct ends rows by \n alone
        with (
            gzip.open(self._path) if self._path.suffix == ".gz" else self._path.open("rb") as file,
            TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline=newline) as text,
        ):
            yield text

    def _table(self, file: IO[str]) -> tuple[Sequence[str], Iterator[Row]]:
        """The names of the columns, and the rows. Raises: ConfigError."""
        header = file.readline().rstrip("\r\n")
        if _NOT_UTF8.search(header):
            raise self._problem("is not text in UTF-8; save it as UTF-8")
        delimiter = self._form.delimiter
        if delimiter is None:
            match = _SACCT_HEADER.match(header)
            delimiter = match["delimiter"] if match else "|"
            names = header.split(delimiter)
            rows = _sacct_rows(file, delimiter, len(names))
        else:
            names = _csv_header(header, delimiter)
            rows = _csv_rows(file, delimiter, len(names))
        names = [name.strip() for name in names]
        self._expect_columns(names, header)
        if found := [name for name in names if name in self._form.free_texts]:
            text = f"has texts that users choose ({', '.join(found)}): one with a line break can bill others as a row"
            remedy = "export without them, or add --trust-names if you trust these users"
            raise self._problem(f"{text} of its own; {remedy}", "line 1")
        return names, rows

    def _expect_columns(self, names: Sequence[str], header: str) -> None:
        if twice := [name for name in (*self._form.columns, *self._form.optional) if names.count(name) > 1]:
            raise self._problem(f"has the column {', '.join(twice)} twice", "line 1")
        if missing := [column for column in self._form.columns if column not in names]:
            text = f"has no column {', '.join(missing)}; it needs {', '.join(self._form.columns)}"
            raise self._problem(text + self._remedy(header), "line 1")

    def _remedy(self, header: str) -> str:
        if self._form.delimiter is None:
            return "; export with sacct --parsable2"
        for other, name in ((";", ";"), ("\t", "\\t"), ("|", "|"), (",", ",")):
            if other != self._form.delimiter and set(self._form.columns) <= {
                each.strip() for each in header.split(other)
            }:
                return f"; its columns are separated by '{name}': add --delimiter '{name}'"
        return "; add --format sacct for the output of sacct" if slurm_jobs.COLUMNS[0] in header else ""

    def _item(
        self, line: int, names: Sequence[str], cells: Sequence[str] | CellError, known: set[int]
    ) -> ImportedJob | Rejected | None:
        """`known` are the hashes of the runs before: 60 bytes each."""
        try:
            if isinstance(cells, CellError):
                raise cells
            row = Cells(dict(zip(names, cells, strict=True)), self._base)
            job = self._form.job(row)
        except CellError as error:
            return Rejected(line, error.column, error.reason)
        if job is None:
            return None
        if (number := hash((job.id, job.run_us))) in known:
            what = (
                "every job has one row"
                if job.run_us is None
                else "every run of a job has one row and a start of its own"
            )
            return Rejected(line, self._form.columns[0], f"{shown(job.id)} is in an earlier row too; {what}")
        known.add(number)
        if row.ambiguous:
            self._ambiguous.add(line, row.ambiguous, job.quantity)
        return job

    def _problem(self, text: str, where: str = "") -> ConfigError:
        return ConfigError([Problem(str(self._path), where, text)])


class _AmbiguousTimes:
    """Imported rows with an ambiguous local time."""

    def __init__(self, base: TimeBase) -> None:
        self._zone = base.zone
        self._named = list[str]()
        self._gpu_time = 0
        self.count = 0

    def add(self, line: int, found: AmbiguousTime, quantity: int) -> None:
        """Add a row with so many µGPU."""
        self.count += 1
        self._gpu_time += found.uncertain_us * quantity
        if self.count <= _NAMED:
            hours = found.uncertain_us * quantity / GPU_HOUR
            self._named.append(
                f"line {line}, {found.column}: {found.text} is ambiguous in {self._zone}; the shorter run is billed "
                f"(up to {hours:,.4f} GPU-hours less)"
            )

    def notes(self) -> list[str]:
        """The first ones, and their sum."""
        if not self.count:
            return []
        total = f"{self.count:,} jobs have an ambiguous local time (end of daylight saving time)"
        less = f"up to {self._gpu_time / GPU_HOUR:,.4f} GPU-hours less are billed"
        return [*self._named, f"{total}; {less}; export times in UTC or with an offset"]


def _sacct_rows(file: IO[str], delimiter: str, columns: int) -> Iterator[Row]:
    for number, line in enumerate(file, start=2):
        if text := line.removesuffix("\n").removesuffix("\r"):
            cells = text.split(delimiter)
            remedy = "a text that users choose, such as JobName, has a separator or a line break; export without it"
            yield number, cells if len(cells) == columns else _miscounted(cells, columns, remedy)


def _csv_header(header: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([header], delimiter=delimiter), [])
    except csv.Error:  # as of binary data
        return [header]


def _csv_rows(file: IO[str], delimiter: str, columns: int) -> Iterator[Row]:
    """Rows of which one part may be in quotes; a row over several lines is rejected if it may have swallowed others.

    If a row ends in an error, such as that its quote is never closed, only its first line is rejected.
    """
    lines = _Lines(file)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        lines.begin()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            where = "" if lines.first == lines.last else f" in line {lines.last}"
            yield lines.first, CellError("", f"{error}{where}; close quotes, and double those in texts")
            lines.go_back()
        else:
            if cells:
                yield lines.first, _checked(cells, columns, delimiter, lines)


class _Lines:
    """The lines of a file after its header, of which those of the current row can be read again."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._row, self._again = deque[str](), deque[str]()
        self._length = 0
        self.first = 2
        """The number of the line where the row begins."""

    @property
    def last(self) -> int:
        """The number of the row's last line so far."""
        return self.first + max(len(self._row) - 1, 0)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Raises: csv.Error if the row is too long."""
        if self._row and self._length > _MOST_TEXT:
            raise csv.Error(f"the row has more than {_MOST_TEXT:,} characters")
        line = self._again.popleft() if self._again else next(self._file)
        self._row.append(line)
        self._length += len(line)
        return line

    def begin(self) -> None:
        """Begin another row."""
        self.first += len(self._row)
        self._row.clear()
        self._length = 0

    def go_back(self) -> None:
        """End the row after its first line."""
        while len(self._row) > 1:
            self._again.appendleft(self._row.pop())


def _checked(cells: Sequence[str], columns: int, delimiter: str, lines: _Lines) -> Sequence[str] | CellError:
    if any(delimiter in cell and _LINE_BREAK.search(cell) for cell in cells):
        return CellError(
            "", f"up to line {lines.last}, a text in quotes has a line break and '{delimiter}': it may be several rows"
        )
    if len(cells) != columns:
        return _miscounted(cells, columns, f"put texts that contain '{delimiter}' in quotes")
    return cells


def _miscounted(cells: Sequence[str], columns: int, remedy: str) -> CellError:
    return CellError("", f"has {len(cells)} cells, but the header has {columns}; {remedy}")

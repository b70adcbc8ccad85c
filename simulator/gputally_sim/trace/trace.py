"""Reads recorded GPU workloads from CSV: pods and nodes.

Pods: `id,tenant,qos,gpu_type,gpu_milli,submit,start,end,status`; times in seconds since the trace's zero. A blank
`start` means never scheduled, a blank `end` never ended. `gpu_type` may list several, separated by `|`. Nodes:
`node,gpu_type,gpu_count`. Other columns are ignored; files with names ending in `.gz` are decompressed.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from gputally.errors import ConfigError, Problem

DELETED = "Running"
"""The status of a pod that ran until it was deleted."""
OUTCOMES = {
    "Succeeded": "Succeeded",
    "Pass": "Succeeded",
    "Failed": "Failed",
    "Killed": "Failed",
    DELETED: "",
    "Pending": "",
}
"""Final phase by status; "" if the pod does not end by itself."""
MILLI_PER_GPU = 1000
_POD_COLUMNS = ("id", "tenant", "qos", "gpu_type", "gpu_milli", "submit", "start", "end", "status")
_NODE_COLUMNS = ("node", "gpu_type", "gpu_count")
_MAX_PROBLEMS = 10

T = TypeVar("T")
Line = tuple[int, Mapping[str, str]]
"""A line number, and the cells by column."""


class TracePod(Struct, frozen=True, kw_only=True):
    """A pod that requests `gpu_milli` thousandths of a GPU of `gpu_types`; if empty, of any type."""

    id: str
    tenant: str
    qos: str
    gpu_types: tuple[str, ...]
    gpu_milli: int
    submit_s: int
    start_s: int | None
    end_s: int | None
    status: str

    @property
    def is_whole(self) -> bool:
        """Whether it requests whole GPUs."""
        return self.gpu_milli % MILLI_PER_GPU == 0


class TraceNode(Struct, frozen=True, kw_only=True):
    """A node with GPUs of one type."""

    name: str
    gpu_type: str
    gpus: int


class Trace(Struct, frozen=True):
    """The pods with GPUs, ordered by submission time."""

    pods: tuple[TracePod, ...]

    @property
    def end_s(self) -> int:
        """Time of the last action."""
        return max((_last(pod) for pod in self.pods), default=0)

    def squeezed(self, factor: int) -> "Trace":
        """The trace sped up by `factor`, in whole seconds; pods that ran, run at least 1 s."""
        return Trace(tuple(_squeezed(pod, factor) for pod in self.pods))


def read_trace(path: Path) -> Trace:
    """Read the pods with GPUs from the CSV at `path`. Raises: ConfigError."""
    pods = _Reader(path, _POD_COLUMNS, _pod, name=lambda pod: pod.id).rows()
    return Trace(tuple(sorted((pod for pod in pods if pod.gpu_milli), key=lambda pod: pod.submit_s)))


def read_nodes(path: Path) -> tuple[TraceNode, ...]:
    """Read the nodes with GPUs from the CSV at `path`. Raises: ConfigError."""
    nodes = _Reader(path, _NODE_COLUMNS, _node, name=lambda node: node.name).rows()
    return tuple(node for node in nodes if node.gpus)


class _Reader(Generic[T]):
    """Reads one file; `make` converts the rows, whose `name` must be unique."""

    def __init__(
        self, path: Path, columns: tuple[str, ...], make: Callable[["_Cells"], T], *, name: Callable[[T], str]
    ) -> None:
        self._path = path
        self._columns = columns
        self._make = make
        self._name = name

    def rows(self) -> list[T]:
        """All rows. Raises: ConfigError with the first problems."""
        rows: list[T] = []
        problems: list[Problem] = []
        seen: dict[str, int] = {}
        for number, cells in self._lines():
            row, found = self._row(_Cells(cells))
            if row is not None and (earlier := seen.setdefault(self._name(row), number)) != number:
                found = [(self._columns[0], f"{self._name(row)!r} is also on line {earlier}; make it unique")]
            problems += (self._problem(f"line {number}, {column}", text) for column, text in found)
            if row is not None:
                rows.append(row)
        self._fail(problems)
        return rows

    def _row(self, cells: "_Cells") -> tuple[T | None, list[tuple[str, str]]]:
        row = self._make(cells)
        return (None if cells.problems else row), cells.problems

    def _lines(self) -> Iterator[Line]:
        try:
            text = self._path.read_bytes()
            text = gzip.decompress(text) if self._path.suffix == ".gz" else text
            reader = csv.DictReader(io.StringIO(text.decode(), newline=""), restval="")
            self._check_header(reader.fieldnames or ())
            for cells in reader:
                yield reader.line_num, cells
        except OSError as error:  # includes gzip.BadGzipFile
            self._fail([self._problem("", f"cannot be read: {error.strerror or error}")])
        except (EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
            self._fail([self._problem("", f"is not CSV in UTF-8: {error}")])

    def _check_header(self, names: Collection[str]) -> None:
        missing = [column for column in self._columns if column not in names]
        self._fail([self._problem("line 1", f"has no column {column!r}; add it to the header") for column in missing])

    def _problem(self, field: str, text: str) -> Problem:
        return Problem(str(self._path), field, text)

    def _fail(self, problems: list[Problem]) -> None:
        if len(problems) > _MAX_PROBLEMS:
            more = self._problem("", f"and {len(problems) - _MAX_PROBLEMS} more")
            problems = [*islice(problems, _MAX_PROBLEMS), more]
        if problems:
            raise ConfigError(problems)


class _Cells:
    """Parses one line's cells, and collects problems by column."""

    def __init__(self, cells: Mapping[str, str]) -> None:
        self._cells = cells
        self.problems: list[tuple[str, str]] = []

    def text(self, column: str) -> str:
        return self._cells[column].strip()

    def name(self, column: str) -> str:
        """Text that must not be blank."""
        if not self.text(column):
            self.problems.append((column, "is blank; add a name"))
        return self.text(column)

    def number(self, column: str) -> int:
        """A whole number; 0 and a problem if invalid."""
        text = self.text(column)
        if not (text.isascii() and text.isdigit()):
            self.problems.append((column, f"{text!r} is not a whole number; use one such as 60"))
            return 0
        return int(text)

    def number_or_none(self, column: str) -> int | None:
        return self.number(column) if self.text(column) else None

    def status(self) -> str:
        """One of OUTCOMES."""
        text = self.text("status")
        if text not in OUTCOMES:
            self.problems.append(("status", f"unknown {text!r}; use {', '.join(OUTCOMES)}"))
        return text

    def in_order(self, column: str, value: int | None, *, before: str, than: int | None) -> None:
        if value is not None and than is not None and value < than:
            self.problems.append((column, f"{value} is before {before} {than}; use the order submit, start, end"))


def _pod(cells: _Cells) -> TracePod:
    pod = TracePod(
        id=cells.name("id"),
        tenant=cells.text("tenant"),
        qos=cells.text("qos"),
        gpu_types=tuple(dict.fromkeys(part for part in cells.text("gpu_type").split("|") if part)),
        gpu_milli=cells.number("gpu_milli"),
        submit_s=cells.number("submit"),
        start_s=cells.number_or_none("start"),
        end_s=cells.number_or_none("end"),
        status=cells.status(),
    )
    cells.in_order("start", pod.start_s, before="submit", than=pod.submit_s)
    cells.in_order("end", pod.end_s, before="submit", than=pod.submit_s)
    cells.in_order("end", pod.end_s, before="start", than=pod.start_s)
    return pod


def _node(cells: _Cells) -> TraceNode:
    return TraceNode(name=cells.name("node"), gpu_type=cells.text("gpu_type"), gpus=cells.number("gpu_count"))


def _last(pod: TracePod) -> int:
    return max(pod.submit_s, pod.start_s or 0, pod.end_s or 0)


def _squeezed(pod: TracePod, factor: int) -> TracePod:
    start_s = None if pod.start_s is None else pod.start_s // factor
    shortest_s = 0 if start_s is None else start_s + 1
    end_s = None if pod.end_s is None else max(pod.end_s // factor, shortest_s)
    return replace(pod, submit_s=pod.submit_s // factor, start_s=start_s, end_s=end_s)

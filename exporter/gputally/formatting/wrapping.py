"""Text on a terminal: lines with a heading on the left, and tables, wrapped to its width."""

import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from gputally.model.printable import printable

_HEAD: Final = 12
"""Columns of the headings."""
_LEAST_WIDTH: Final = 60
_MOST_WIDTH: Final = 100


class Paragraph(NamedTuple):
    """A text without a heading."""

    text: str


class Fact(NamedTuple):
    """A text behind its heading; without one it belongs to the heading above."""

    head: str
    text: str


class Grid(NamedTuple):
    """A table whose first row has the heads, behind a heading, with the columns `right` aligned to the right.

    The last column is wrapped to the width if it `wraps`; otherwise names are never cut off.
    """

    rows: Sequence[Sequence[str]]
    right: frozenset[int]
    head: str = ""
    wraps: bool = False


Part = Paragraph | Fact | Grid | str
"""A string is one line, which may be empty."""
Parts = Iterator[Part]


def fact_if(head: str, text: str) -> Iterator[Fact]:
    """The fact; nothing without a text."""
    if text:
        yield Fact(head, text)


def text_lines(parts: Iterable[Part], *, width: int) -> Iterator[str]:
    """The parts as lines of a terminal."""
    for part in parts:
        match part:
            case Paragraph(text):
                yield from paragraph(text, width)
            case Fact(head, text):
                yield from headed(head, text, width=width)
            case Grid():
                yield from _grid_lines(part, width)
            case str(line):
                yield line


def _grid_lines(grid: Grid, width: int) -> Iterator[str]:
    rows, right, head, wraps = grid
    if head:
        yield from headed_table(head, rows, right=right)
        return
    for line, row in zip(table(rows, right=right), rows, strict=True):
        yield from wrapped_cell(line, start=len(line) - len(row[-1]), width=width) if wraps else [line]


def headed(head: str, text: str, *, width: int) -> Iterator[str]:
    """The text behind its heading; further lines are indented alike. Control characters are written out."""
    indent = " " * _HEAD
    yield from textwrap.wrap(
        printable(text),
        width,
        initial_indent=f"{head:<{_HEAD}}",
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [head]


def paragraph(text: str, width: int) -> list[str]:
    """The text without a heading, wrapped."""
    return textwrap.wrap(printable(text), width, break_long_words=False, break_on_hyphens=False)


def headed_table(head: str, rows: Sequence[Sequence[str]], *, right: frozenset[int]) -> Iterator[str]:
    """Rows in columns behind the heading, as in `table`."""
    for index, line in enumerate(table(rows, right=right)):
        yield f"{head if index == 0 else '':<{_HEAD}}{line}"


def table(rows: Sequence[Sequence[str]], *, right: frozenset[int]) -> Iterator[str]:
    """Rows in columns; columns `right` are aligned to the right. Names are never cut off."""
    texts = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        cells = (
            cell.rjust(size) if column in right else cell.ljust(size)
            for column, (cell, size) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def wrapped_cell(line: str, *, start: int, width: int) -> list[str]:
    """A line of a table whose last cell begins at `start`; what is beyond `width` goes below that."""
    return textwrap.wrap(line, width, subsequent_indent=" " * start, break_long_words=False, break_on_hyphens=False)


def width() -> int:
    """The width of the text: the terminal's, within limits; the largest in a pipe."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else _MOST_WIDTH
    return min(_MOST_WIDTH, max(_LEAST_WIDTH, columns))

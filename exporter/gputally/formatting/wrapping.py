"""Text on a terminal: lines with a heading on the left, and tables, wrapped to its width."""

import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from gputally.model.printable import printable

_HEAD: Final = 12
"""Columns of the headings."""
_LEAST_WIDTH: Final = 60
_MOST_WIDTH: Final = 100


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


def headed_if(head: str, text: str, *, width: int) -> Iterator[str]:
    """The text behind its heading, as `headed` yields it; nothing without a text."""
    if text:
        yield from headed(head, text, width=width)


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


def print_lines(lines: Iterable[str]) -> None:
    """Write them to standard output."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def print_json(body: bytes) -> None:
    """Write the document, indented."""
    sys.stdout.buffer.write(msgspec.json.format(body, indent=2) + b"\n")
    sys.stdout.flush()

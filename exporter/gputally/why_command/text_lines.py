"""Lines of text with a heading on the left, wrapped to a width, and times and money as a person reads them."""

import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from gputally.ledger_commands.plain_text import printable
from gputally.pending_api.words.amount_words import gpu_words

_HEAD: Final = 12
"""Columns of the headings."""


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
    """As `headed`, and nothing without a text."""
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


def clock(at: datetime, *, now: datetime) -> str:
    """`09:10`, with the date if that is another day (UTC)."""
    return f"{at:%H:%M}" if at.date() == now.date() else f"{at:%m-%d %H:%M}"


def money(decimal: str | None, currency: str) -> str:
    """`15.00 USD`; `unpriced` without a price, "" without a price book."""
    if not currency:
        return ""
    return "unpriced" if decimal is None else f"{Decimal(decimal):,.2f} {currency}"


def gpus(count: float) -> str:
    """`1 GPU`, `0.5 GPUs`."""
    return gpu_words(count)


def pods(count: int) -> str:
    """`1 pod`, `2 pods`."""
    return f"{count:,} pod{'' if count == 1 else 's'}"

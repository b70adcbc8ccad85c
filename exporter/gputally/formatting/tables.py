"""Tables as plain text, Markdown, CSV and JSON."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, islice
from typing import Any, Final, TextIO

from msgspec import json

from gputally.errors import LedgerError
from gputally.formatting.csv_cells import Row, csv_line, text_of
from gputally.model.printable import printable

_ENCODER: Final = json.Encoder(decimal_format="number")
_MEASURED: Final = 1_000
"""Rows that determine the widths of the columns; the others are printed as they come."""
_MARKUP: Final = re.compile(r"([\\`*<>\[\]|#&~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
"""Source: https://spec.commonmark.org/; an underscore within a word is text."""


def write_rows(file: TextIO, columns: Sequence[str], rows: Iterable[Row], *, output: str) -> None:
    """Write the rows to `file` as table, csv or json, in bounded memory.

    Raises: LedgerError if two columns of json have the same name.
    """
    if output == "csv":
        file.writelines(map(csv_line, chain([columns], rows)))
    elif output == "json":
        file.writelines(_json_lines(columns, rows))
    else:
        file.writelines(table_lines(columns, rows))


def write_document(file: TextIO, document: Mapping[str, Any]) -> None:
    """Write one JSON document, decimals as numbers."""
    file.write(json.format(_ENCODER.encode(document), indent=2).decode())
    file.write("\n")


def markdown_table(head: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    """The lines of a table in Markdown; the first row decides which columns are numbers, to the right."""
    aligned = ["--:" if isinstance(each, Decimal | int) else "---" for each in (rows[0] if rows else head)]
    yield _markdown_line(head)
    yield f"| {' | '.join(aligned)} |\n"
    yield from map(_markdown_line, rows)


def _markdown_line(cells: Row) -> str:
    return f"| {' | '.join(markdown(text_of(each)) for each in cells)} |\n"


def markdown(text: str) -> str:
    """`text` as text of Markdown in one line: names and values are never markup."""
    return _MARKUP.sub(r"\\\1", printable(text))


def _json_lines(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    if repeated := sorted({name for name in columns if columns.count(name) > 1}):
        raise LedgerError(f"SQL: several columns are named {', '.join(repeated)}; rename them with AS")
    for row in rows:
        values = (text_of(value) if isinstance(value, bytes) else value for value in row)
        yield json.encode(dict(zip(columns, values, strict=True))).decode() + "\n"


def table_lines(columns: Sequence[str], rows: Iterable[Row], *, widths: Sequence[int] = ()) -> Iterator[str]:
    """The lines of a table for people, with numbers to the right; its columns have at least these `widths`."""
    columns, remaining = [printable(each) for each in columns], iter(rows)
    first = list(islice(remaining, _MEASURED))
    texts = [[printable(each) for each in _texts(row)] for row in first]
    needed = [max(map(len, column)) for column in zip(columns, *texts, strict=True)]
    widths = [max(pair) for pair in zip(needed, widths, strict=True)] if widths else needed
    numeric = [
        bool(first) and all(isinstance(each, int | float | Decimal | None) for each in column)
        for column in zip(*first, strict=True)
    ]
    numeric = numeric or [False] * len(columns)
    yield _line(columns, widths, numeric)
    for row in chain(texts, ([printable(each) for each in _texts(row)] for row in remaining)):
        yield _line(row, widths, numeric)


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    aligned = (
        cell.rjust(width) if is_number else cell.ljust(width)
        for cell, width, is_number in zip(cells, widths, numeric, strict=True)
    )
    return "  ".join(aligned).rstrip() + "\n"


def _texts(row: Row) -> list[str]:
    return [text_of(value) for value in row]

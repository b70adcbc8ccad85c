"""Cells of CSV files, harmless for spreadsheets, and values as the text of a cell."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

Row = Sequence[object]
_QUOTE: Final = '"'
_SPECIAL: Final = re.compile(r'[",\t\r\n]')
_FORMULA: Final = re.compile(r"[\t\r\n]|\s*[=+\-@'\uff1d\uff0b\uff0d\uff20]")
"""How a cell begins that a spreadsheet computes, also in full width; and the mark itself.

Source: https://owasp.org/www-community/attacks/CSV_Injection.
"""
_NUMBER: Final = re.compile(r"-[0-9]+(\.[0-9]+)?")


class AtMost(Decimal):
    """An upper bound, which tables show with a sign: `<1.50`."""

    def __str__(self) -> str:
        return f"<{Decimal(self):f}"


def csv_line(row: Row) -> str:
    """A row as in RFC 4180, but with a newline at the end; every CSV file that a person may open is written with it.

    Text that a spreadsheet would compute gets an apostrophe before it, and so does text that begins with one: a reader
    removes it from every text. Numbers stay as they are, also as a text with a minus and digits.
    """
    cells = [
        text_of(each) if isinstance(each, int | float | Decimal) else _quoted(_inert(text_of(each))) for each in row
    ]
    return (2 * _QUOTE if cells == [""] else ",".join(cells)) + "\n"  # many readers skip an empty line


def _inert(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def _quoted(text: str) -> str:
    return _QUOTE + text.replace(_QUOTE, 2 * _QUOTE) + _QUOTE if _SPECIAL.search(text) else text


def text_of(value: object) -> str:
    """NULL is empty, bytes are text if they can be read as such, or else hexadecimal; decimals have no exponent."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return f"0x{value.hex()}"
    if isinstance(value, Decimal) and not isinstance(value, AtMost):
        return f"{value:f}"
    return "" if value is None else str(value)

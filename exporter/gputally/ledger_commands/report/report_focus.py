"""Reports as FOCUS files."""

from collections.abc import Iterator
from itertools import chain
from typing import TextIO

from gputally.ledger_commands.plain_text import csv_line
from gputally.reports.focus import FocusRow


def write_focus(file: TextIO, rows: Iterator[FocusRow]) -> int:
    """Write the rows as CSV as they are read; returns their number. Without rows, the file is empty."""
    first = next(rows, None)
    if first is None:
        return 0
    file.write(csv_line([*first]))
    count = 0
    for row in chain((first,), rows):
        file.write(csv_line([row[column] for column in first]))
        count += 1
    return count

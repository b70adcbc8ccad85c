"""Reports as FOCUS files."""

import csv
from collections.abc import Iterator
from itertools import chain
from typing import TextIO

from gputally.report.focus import FocusRow


def write_focus(file: TextIO, rows: Iterator[FocusRow]) -> int:
    """Write the rows as CSV as they are read; returns their number. Without rows, the file is empty."""
    first = next(rows, None)
    if first is None:
        return 0
    writer = csv.DictWriter(file, first.keys(), lineterminator="\n")
    writer.writeheader()
    count = 0
    for row in chain((first,), rows):
        writer.writerow(row)
        count += 1
    return count

"""What `gputally import` prints of its result."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from gputally.formatting.csv_cells import csv_line
from gputally.importing.import_jobs import Counts
from gputally.model.printable import printable

_SHOWN: Final = 20
"""Rejected rows that are printed."""
NOT_ALL_STATUS: Final = 9
"""Exit status if rows are rejected, or not certain."""


class ImportOutput(NamedTuple):
    """The name of the `source`, what its rows are, and the file for rejected ones, whose `columns` it has."""

    source: str
    rows: str
    rejected: Path | None
    columns: Sequence[str]


def finish_import(output: ImportOutput, counts: Counts, problem: str) -> int:
    """Report the counts, rejected rows and any `problem`; returns the exit status."""
    if output.rejected:
        with output.rejected.open("w", encoding="utf-8", newline="") as file:
            file.writelines(map(csv_line, [output.columns, *counts.rejected]))
    for each in counts.rejected[:_SHOWN]:
        sys.stderr.write(f"{output.source}: {printable(str(each))}\n")
    if (more := len(counts.rejected) - _SHOWN) > 0:
        sys.stderr.write(f"{output.source}: {more:,} more rejected rows; write all with --rejected FILE\n")
    if problem:
        sys.stderr.write(f"{output.source}: {problem}\n")
    sys.stdout.write(
        f"{counts.new:,} {output.rows} new, {counts.changed:,} changed, {counts.unchanged:,} unchanged; "
        f"{counts.without:,} without GPUs or never started; {len(counts.rejected):,} rejected\n"
    )
    return NOT_ALL_STATUS if counts.rejected or problem else 0

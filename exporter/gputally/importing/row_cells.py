"""The cells of one row: texts, numbers and times, or what is wrong with them."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from typing import Final, NamedTuple

from gputally.model.units import US_PER_SECOND, to_us

_DIGITS: Final = re.compile(r"\d{1,12}", re.ASCII)


class Rejected(NamedTuple):
    """A row that was not imported: the line of the file, the column, and the reason."""

    line: int
    column: str
    reason: str

    def __str__(self) -> str:
        """For people."""
        return f"line {self.line}, {self.column}: {self.reason}"


class CellError(Exception):
    """A cell that is not valid."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(reason)
        self.column = column
        self.reason = reason


class TimeBase(NamedTuple):
    """How times are written: as seconds since `zero_us`, if it is known; without an offset, in `zone`."""

    zero_us: int | None = None
    zone: tzinfo = UTC


class Cells:
    """One row. Its methods raise CellError."""

    def __init__(self, cells: Mapping[str, str], base: TimeBase) -> None:
        self._cells = cells
        self._base = base

    def text(self, column: str) -> str:
        """The text without surrounding blanks; empty without such a column."""
        return (self._cells.get(column) or "").strip()

    def name(self, column: str) -> str:
        """A text that must not be empty."""
        if text := self.text(column):
            return text
        raise CellError(column, "is empty; every row needs one")

    def number(self, column: str) -> int:
        """A whole number from 0."""
        text = self.text(column)
        if not _DIGITS.fullmatch(text):
            raise CellError(column, f"'{text}' is not a whole number from 0 with at most 12 digits")
        return int(text)

    def time_us(self, column: str) -> int:
        """A time: seconds since the zero of the file, or a date and time in ISO 8601."""
        text = self.text(column)
        if _DIGITS.fullmatch(text):
            if self._base.zero_us is None:
                raise CellError(column, f"'{text}' has no date; say with --zero when second 0 is")
            return self._base.zero_us + int(text) * US_PER_SECOND
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            reason = f"'{text}' is not a time; use 2026-10-01T12:00:00, or seconds with --zero"
            raise CellError(column, reason) from None
        return to_us(time if time.tzinfo else time.replace(tzinfo=self._base.zone))

    def optional_time_us(self, column: str) -> int | None:
        """A time, or None if the cell is empty or says that there is none."""
        return None if self.text(column) in ("", "Unknown", "None", "N/A") else self.time_us(column)

    def ordered(self, **times: int | None) -> None:
        """The times, by column, are in this order."""
        known = [(column, us) for column, us in times.items() if us is not None]
        for (before, earlier_us), (column, later_us) in pairwise(known):
            if later_us < earlier_us:
                raise CellError(column, f"is before {before}")

"""The cells of one row: texts, numbers and times, or what is wrong with them."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from itertools import pairwise, product
from typing import Final, NamedTuple

from gputally.model.printable import printable
from gputally.model.units import US_PER_SECOND, to_us

MOST_GPUS: Final = 1_000_000
"""GPUs of one job beyond which a number is taken for an error."""
_DIGITS: Final = re.compile(r"\d{1,12}", re.ASCII)
_NEVER: Final = ("", "Unknown", "None", "N/A")
_FIRST_YEAR, _LAST_YEAR = 1970, 2199
_AFTER_US: Final = to_us(datetime(_LAST_YEAR + 1, 1, 1, tzinfo=UTC))
_SHOWN: Final = 100
"""Characters of a cell that a message repeats."""


class Rejected(NamedTuple):
    """A row that was not imported: the line of the file, the column, and the reason."""

    line: int
    column: str
    reason: str

    def __str__(self) -> str:
        """For people."""
        return f"line {self.line}{self.column and ', '}{self.column}: {self.reason}"


class CellError(Exception):
    """A cell that is not valid; without a column, the row is not."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(reason)
        self.column = column
        self.reason = reason


class TimeBase(NamedTuple):
    """How times are written: as seconds since `zero_us`, if it is known; without an offset, in `zone`."""

    zero_us: int | None = None
    zone: tzinfo = UTC


class AmbiguousTime(NamedTuple):
    """An ambiguous local time (end of daylight saving time), of a job that may have run longer by `uncertain_us`."""

    column: str
    text: str
    uncertain_us: int


class JobTimes(NamedTuple):
    """When a job was submitted, started and ended, in µs; None for what has not happened.

    `run_us` is the first instant that its start may be, which stays the same when its end becomes known.
    """

    submit_us: int
    start_us: int | None
    end_us: int | None
    run_us: int | None


class Cells:
    """One row. Its methods raise CellError."""

    def __init__(self, cells: Mapping[str, str], base: TimeBase) -> None:
        self._cells = cells
        self._base = base
        self.ambiguous: AmbiguousTime | None = None
        """What is not certain of the job's times."""

    def text(self, column: str) -> str:
        """The text without surrounding blanks; empty without such a column."""
        text = self._cells.get(column, "").strip()
        if text.isprintable():
            return text
        raise CellError(column, f"'{shown(text)}' has characters that are not printable, or is not text in UTF-8")

    def name(self, column: str) -> str:
        """A text that must not be empty."""
        if text := self.text(column):
            return text
        raise CellError(column, "is empty; every row needs one")

    def number(self, column: str, *, most: int) -> int:
        """A whole number from 0 to `most`."""
        text = self.text(column)
        if not _DIGITS.fullmatch(text):
            raise CellError(column, f"'{shown(text)}' is not a whole number from 0 with at most 12 digits")
        if int(text) > most:
            raise CellError(column, f"{text} is more than one job may have ({most})")
        return int(text)

    def times(self, submit: str, start: str, end: str, *, submit_is_reset: bool = False) -> JobTimes:
        """The times of a job, in their order; without a date if the cell is empty or says so.

        Of an ambiguous local time, the order of the times decides. Where that leaves several readings, the
        shortest run counts, then the earliest, and `ambiguous` says so. With `submit_is_reset`, a job may have been
        submitted again after its start, which then decides nothing.
        """
        submits = self._readings(submit)
        starts, ends = self._optional_readings(start), self._optional_readings(end)
        found = [times for times in product(submits, starts, ends) if _is_ordered(*times)]
        if not found and submit_is_reset:
            found = [(submits[0], *times) for times in product(starts, ends) if _is_ordered(None, *times)]
        if not found:
            raise self._disorder({submit: submits[0], start: starts[0], end: ends[0]})
        if len(found) == 1:
            return JobTimes(*found[0], run_us=starts[0])
        chosen = min(found, key=_preference)
        runs = {times[1:] for times in found}
        if len(runs) > 1:
            column = start if len({began for began, _ in runs}) > 1 else end
            lengths = [_run_us(each) for each in runs]
            self.ambiguous = AmbiguousTime(column, self.text(column), max(lengths) - min(lengths))
        return JobTimes(*chosen, run_us=starts[0])

    def _optional_readings(self, column: str) -> tuple[int | None, ...]:
        return (None,) if self.text(column) in _NEVER else self._readings(column)

    def _readings(self, column: str) -> tuple[int, ...]:
        try:
            return readings(self.text(column), self._base)
        except ValueError as error:
            raise CellError(column, str(error)) from None

    def _disorder(self, times: Mapping[str, int | None]) -> CellError:
        known = [(column, us) for column, us in times.items() if us is not None]
        found = ((column, before) for (before, a_us), (column, b_us) in pairwise(known) if b_us < a_us)
        column, before = next(found, (known[-1][0], known[0][0]))
        return CellError(column, f"is before {before}")


def readings(text: str, base: TimeBase) -> tuple[int, ...]:
    """The instants that `text` may be, in µs: two if it is an ambiguous local time, otherwise one.

    It is a number of seconds since the zero of the file, or a date and time in ISO 8601. Raises: ValueError.
    """
    if _DIGITS.fullmatch(text):
        if base.zero_us is None:
            raise ValueError(f"'{text}' has no date; say with --zero when second 0 is")
        return (_within(base.zero_us + int(text) * US_PER_SECOND, text),)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"'{shown(text)}' is not a time; use 2026-10-01T12:00:00, or seconds with --zero") from None
    if not _FIRST_YEAR <= time.year <= _LAST_YEAR + 1:
        raise _out_of_range(text)
    if time.tzinfo or base.zone is UTC:
        return (_within(to_us(time if time.tzinfo else time.replace(tzinfo=UTC)), text),)
    return tuple(_within(us, text) for us in _local(time.replace(tzinfo=base.zone), text))


def _local(time: datetime, text: str) -> tuple[int, ...]:
    """The instants of a local time: two if it is ambiguous. Raises: ValueError for a nonexistent one."""
    again = time.replace(fold=1)
    before, after = time.utcoffset(), again.utcoffset()
    assert before is not None
    assert after is not None
    if before == after:
        return (to_us(time),)
    if before > after:  # see PEP 495: the first offset is that before the clocks change
        return to_us(time), to_us(again)
    raise ValueError(f"{text} is nonexistent in {time.tzinfo} (start of daylight saving time); check --time-zone")


def _within(us: int, text: str) -> int:
    if 0 <= us < _AFTER_US:
        return us
    raise _out_of_range(text)


def _out_of_range(text: str) -> ValueError:
    return ValueError(f"'{text}' is not between {_FIRST_YEAR} and {_LAST_YEAR}")


def _is_ordered(submit_us: int | None, start_us: int | None, end_us: int | None) -> bool:
    after_us = submit_us or 0 if start_us is None else start_us
    return (submit_us or 0) <= after_us and (end_us is None or after_us <= end_us)


def _run_us(run: tuple[int | None, ...]) -> int:
    """How long it is, to compare readings of one run; what still runs ends at 0."""
    start_us, end_us = run
    return 0 if start_us is None else (end_us or 0) - start_us


def _preference(times: tuple[int | None, ...]) -> tuple[int, int, int]:
    submit_us, start_us, _ = times
    return _run_us(times[1:]), start_us or 0, -(submit_us or 0)


def shown(text: str) -> str:
    """A text of the file in a message: not longer than a line, and printable."""
    return printable(text[:_SHOWN])

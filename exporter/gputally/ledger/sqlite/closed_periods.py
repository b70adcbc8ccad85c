"""Closed periods as rows."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from sqlite3 import Connection
from typing import Any, Final

from msgspec.structs import asdict

from gputally.errors import LedgerDamaged, LedgerError
from gputally.ledger.closed_period import (
    LINE_COLUMNS,
    ClosedLine,
    ClosedPeriod,
    broken_chain,
    line_of,
)
from gputally.ledger.sqlite.rows import Row, Rows
from gputally.ledger.tables.closed import CLOSED_LINES, CLOSED_PERIODS, ClosedPeriodRow
from gputally.ledger.tables.statements import insert, listed, select

_SELECT_PERIODS: Final = f"{select(CLOSED_PERIODS)} ORDER BY number"
_SELECT_LINES: Final = f"SELECT period, {listed(LINE_COLUMNS)} FROM closed_lines ORDER BY period, ordinal"  # noqa: S608 (literals only)
_LAST: Final = "SELECT number, hash FROM closed_periods ORDER BY number DESC LIMIT 1"
_INSERT_PERIOD: Final = insert(CLOSED_PERIODS)
_INSERT_LINE: Final = insert(CLOSED_LINES)
_period_row: Final = attrgetter(*CLOSED_PERIODS.fields)


def read_closed(rows: Rows) -> list[ClosedPeriod]:
    """All closed periods, in order; one that is closed during the read is left out.

    Raises: LedgerDamaged for impossible values.
    """
    found = [ClosedPeriodRow(*row) for row in rows(_SELECT_PERIODS, {})]
    lines = defaultdict[int, list[ClosedLine]](list)
    for period, *fields in rows(_SELECT_LINES, {}):
        lines[period].append(_line(period, fields))
    return [ClosedPeriod(**asdict(each), lines=tuple(lines[each.number])) for each in found]


def append_period(connection: Connection, period: ClosedPeriod) -> None:
    """Append the period, in a transaction of the caller. Raises: LedgerError if it is not the next one."""
    last = connection.execute(_LAST).fetchone() or (0, "")
    if (period.number, period.previous) != (last[0] + 1, last[1]):
        raise LedgerError(f"period {period.name}: is number {period.number}, but the last closed one is {last[0]}")
    connection.execute(_INSERT_PERIOD, _period_row(period))
    lines = ((period.number, ordinal, *line.fields) for ordinal, line in enumerate(period.lines))
    connection.executemany(_INSERT_LINE, lines)


def check_chain(connection: Connection) -> Iterator[None]:
    """Check the hashes of all closed periods. Raises: LedgerDamaged."""

    def rows(sql: str, values: Mapping[str, Any]) -> Sequence[Row]:
        return connection.execute(sql, values).fetchall()

    if broken := broken_chain(read_closed(rows)):
        raise LedgerDamaged(broken.text)
    yield


def _line(period: int, fields: Sequence[Any]) -> ClosedLine:
    try:
        return line_of(fields)
    except (ValueError, ArithmeticError):
        raise LedgerDamaged(f"a line of closed period number {period} was changed: it cannot be read") from None

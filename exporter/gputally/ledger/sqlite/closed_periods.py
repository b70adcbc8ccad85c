"""Closed periods as rows."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from sqlite3 import Connection
from typing import Any, Final

from gputally.errors import LedgerDamaged, LedgerError
from gputally.ledger.closed_period import (
    LINE_COLUMNS,
    PERIOD_COLUMNS,
    ClosedLine,
    ClosedPeriod,
    broken_chain,
    line_of,
)
from gputally.ledger.sqlite.rows import Row, Rows

_SELECT_PERIODS: Final = f"SELECT {', '.join(PERIOD_COLUMNS)}, hash FROM closed_periods ORDER BY number"  # noqa: S608 (literals only)
_SELECT_LINES: Final = f"SELECT period, {', '.join(LINE_COLUMNS)} FROM closed_lines ORDER BY period, ordinal"  # noqa: S608 (literals only)
_LAST: Final = "SELECT number, hash FROM closed_periods ORDER BY number DESC LIMIT 1"
_INSERT_PERIOD: Final = f"INSERT INTO closed_periods VALUES ({', '.join('?' * len(PERIOD_COLUMNS))}, ?)"  # noqa: S608 (literals only)
_INSERT_LINE: Final = f"INSERT INTO closed_lines VALUES (?, ?, {', '.join('?' * len(LINE_COLUMNS))})"  # noqa: S608 (literals only)


def read_closed(rows: Rows) -> list[ClosedPeriod]:
    """All closed periods, in order; one that is closed during the read is left out.

    Raises: LedgerDamaged for impossible values.
    """
    found = [(dict(zip(PERIOD_COLUMNS, row[:-1], strict=True)), row[-1]) for row in rows(_SELECT_PERIODS, {})]
    lines = defaultdict[int, list[ClosedLine]](list)
    for period, *fields in rows(_SELECT_LINES, {}):
        lines[period].append(_line(period, fields))
    return [ClosedPeriod(**each, lines=tuple(lines[each["number"]]), hash=digest) for each, digest in found]


def append_period(connection: Connection, period: ClosedPeriod) -> None:
    """Append the period, in a transaction of the caller. Raises: LedgerError if it is not the next one."""
    last = connection.execute(_LAST).fetchone() or (0, "")
    if (period.number, period.previous) != (last[0] + 1, last[1]):
        raise LedgerError(f"period {period.name}: is number {period.number}, but the last closed one is {last[0]}")
    connection.execute(_INSERT_PERIOD, (*period.fields, period.hash))
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

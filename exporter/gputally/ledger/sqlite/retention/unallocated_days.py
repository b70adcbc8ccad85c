"""Rolls usage outside any allocation up: one row for each GPU and day, at the day's first hour by its node's clock."""

import sqlite3
from collections.abc import Iterator
from typing import Final

from gputally.ledger.sqlite.retention.free_pages import Transaction
from gputally.ledger.sqlite.retention.rolled_pods import MARK
from gputally.model.units import US_PER_DAY

_DAYS: Final = 20
"""Days of one GPU that are rolled up in one transaction."""
_GPUS: Final = 50
"""GPUs looked at in one step."""
_NEXT: Final = "SELECT epoch, gpu FROM unallocated_usage WHERE (epoch, gpu) > (?, ?) ORDER BY epoch, gpu LIMIT 1"
_SUMS: Final = f"""
SELECT start_us / {US_PER_DAY} * {US_PER_DAY} AS day_us, max(node), sum(unattributed), sum(energy)
FROM unallocated_usage WHERE epoch = :epoch AND gpu = :gpu AND start_us < :before
GROUP BY day_us HAVING count(*) > 1 AND NOT max(open)
LIMIT {_DAYS}
"""  # noqa: S608 (numbers only)
_DELETE: Final = f"""
DELETE FROM unallocated_usage WHERE epoch = ? AND gpu = ? AND start_us >= ? AND start_us < ? + {US_PER_DAY}
"""  # noqa: S608 (numbers only)
_INSERT: Final = """
INSERT INTO unallocated_usage (epoch, gpu, start_us, node, unattributed, energy, open) VALUES (?, ?, ?, ?, ?, ?, 0)
"""


def roll_up_unallocated(connection: sqlite3.Connection, transaction: Transaction, *, before_us: int) -> Iterator[None]:
    """Roll up the hours before `before_us`, a midnight."""
    found: tuple[str, str] | None = ("", "")
    while found is not None:
        with transaction():
            for _ in range(_GPUS):
                following = connection.execute(_NEXT, found).fetchone()
                if following and _roll_up_days(connection, following, before_us):
                    break  # and go on with it in the next step
                found = following
                if found is None:
                    break
        yield


def _roll_up_days(connection: sqlite3.Connection, key: tuple[str, str], before_us: int) -> bool:
    """Roll up some days of a GPU, if there are any."""
    bounds = {"epoch": key[0], "gpu": key[1], "before": before_us}
    days = connection.execute(_SUMS, bounds).fetchall()
    connection.executemany(_DELETE, [(*key, day_us, day_us) for day_us, *_ in days])
    connection.executemany(_INSERT, [(*key, *row) for row in days])
    if days:
        connection.execute(MARK, {"before": str(before_us)})
    return bool(days)

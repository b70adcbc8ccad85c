"""Which pods are rolled up: none of them may count again."""

import json
import sqlite3
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

_FOUND: Final = """
SELECT uid_hash FROM json_each(?) AS wanted CROSS JOIN rolled_pods ON uid_hash = wanted.value
"""

MARK: Final = """
INSERT INTO meta VALUES ('detail_start_us', :before), ('roll_ups', '1')
ON CONFLICT (key) DO UPDATE SET value = CASE key
    WHEN 'roll_ups' THEN CAST(CAST(value AS INTEGER) + 1 AS TEXT)
    ELSE CAST(max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER)) AS TEXT)
END
"""
"""Marks in a transaction that something was rolled up, up to where, and for readers that overlap with it."""


def uid_hash(uid: str) -> int:
    """A number of 64 bits; that two pods have the same is less likely than a disk error."""
    return int.from_bytes(blake2b(uid.encode(), digest_size=8).digest(), "big", signed=True)


def rolled_up(connection: sqlite3.Connection, uids: Iterable[str]) -> set[str]:
    """Those of the pods that are rolled up."""
    hashes = {uid_hash(uid): uid for uid in uids}
    return {hashes[found] for (found,) in connection.execute(_FOUND, (json.dumps(list(hashes)),))}

"""`gputally ledger check`: whether a ledger is damaged."""

import sys
import time
from typing import Final

from msgspec import Struct, json

from gputally.errors import LedgerDamaged
from gputally.ledger.open import path_of
from gputally.ledger.sqlite.file import reading
from gputally.ledger.sqlite.integrity import examine
from gputally.ledger_commands.plain_text import size
from gputally.ledger_commands.progress_line import ProgressLine, ending_at_once

VERSION: Final = 1
"""Raised when a field is removed or changes its meaning; new fields do not change it."""
_REMEDY: Final = (
    "stop the aggregator and restore a backup with 'gputally restore': docs/runbooks/GputallyLedgerDamaged.md"
)


class CheckDocument(Struct, frozen=True, kw_only=True):
    """The result of a check; `damage` is the first damage found."""

    version: int = VERSION
    ledger: str
    damaged: bool
    damage: str | None
    size_bytes: int
    seconds: float


def check(ledger: str, *, output: str) -> int:
    """Check all of the ledger and print the result. Raises: LedgerDamaged, other LedgerErrors."""
    path, started, damage = path_of(ledger), time.monotonic(), None
    try:
        with ending_at_once(), ProgressLine() as progress, reading(path) as connection:
            examine(connection, path, progress)
    except LedgerDamaged as error:
        damage = error
    took, count = time.monotonic() - started, path.stat().st_size
    if output == "json":
        document = CheckDocument(
            ledger=str(path),
            damaged=damage is not None,
            damage=str(damage) if damage else None,
            size_bytes=count,
            seconds=round(took, 3),
        )
        sys.stdout.write(json.encode(document).decode() + "\n")
    if damage:
        raise LedgerDamaged(f"{damage}; {_REMEDY}")
    if output == "table":
        sys.stdout.write(f"{path}: no damage found, {size(count)} checked in {took:.1f} s\n")
    return 0

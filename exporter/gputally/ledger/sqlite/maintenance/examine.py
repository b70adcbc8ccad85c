"""The complete check of a ledger that a person asks for, or of its copy."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gputally.errors import LedgerDamaged
from gputally.ledger.sqlite import integrity
from gputally.ledger.sqlite.schema import missing_part, newest_schema, version_of

Report = Callable[[str], None]
"""Receives what is done now, in a few words."""
_EVERY: Final = 20


def examine(connection: sqlite3.Connection, path: Path, report: Report) -> None:
    """Check every page, index and row of the ledger, that no table is missing, and that its pods add up.

    SQLite checks all of it in one transaction. The rows of another schema than the current one are not compared.

    Raises: LedgerDamaged with the first damage found; LedgerUnwritable if the file cannot be read now.
    """
    with integrity.damage_of(path):
        report("checking all pages")
        [(found,)] = connection.execute("PRAGMA integrity_check(1)")
        if found != "ok":
            raise LedgerDamaged(f"{path}: is damaged: {found}")
        if version_of(connection) <= newest_schema() and (missing := missing_part(connection)):
            raise LedgerDamaged(f"{path}: is damaged: {missing}")
        if version_of(connection) == newest_schema():
            _compare_rows(connection, path, report)


def _compare_rows(connection: sqlite3.Connection, path: Path, report: Report) -> None:
    try:
        for step, _ in enumerate(integrity.steps(connection)):
            if step % _EVERY == 0:
                report(f"checking the rows, step {step}")
    except LedgerDamaged as error:
        raise LedgerDamaged(f"{path}: is damaged: {error}") from None

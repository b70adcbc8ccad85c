"""A version of gputally with one more schema, for which the ledgers of today are older ones."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from gputally.ledger.sqlite import schema
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.contract.records import pod, segment, step

TODAY: Final = schema.newest_schema()
NEXT: Final = TODAY + 1
STEP: Final = "ALTER TABLE pods ADD COLUMN added INTEGER NOT NULL DEFAULT 7"
PODS: Final = ("pod-a", "pod-b", "pod-c")


def begin_next_version(patch: pytest.MonkeyPatch, step_: str = STEP) -> None:
    """From now on this process has one more schema, which `step_` leads to."""
    steps, new = [*schema.migrations(), (NEXT, step_)], f"{schema.new_schema()};\n{step_}"
    patch.setattr(schema, "migrations", lambda: steps)
    patch.setattr(schema, "new_schema", lambda: new)


def written(path: Path) -> list[str]:
    """Make a ledger with some pods; its content."""
    with SqliteLedger(path) as ledger:
        ledger.bind("uid-1")
        ledger.write(step(*(pod(name, segment(1000, 2000)) for name in PODS)))
    path.with_name(f"{path.name}.begun").unlink()
    return content(path)


def content(path: Path) -> list[str]:
    """All rows and the schema of the file, as SQL."""
    with closing(sqlite3.connect(path)) as connection:
        return [f"PRAGMA user_version = {schema.version_of(connection)}", *connection.iterdump()]

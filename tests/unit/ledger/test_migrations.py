"""Steps of the schema: numbered, in order, each whole or not at all."""

import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest

from gputally.errors import LedgerError
from gputally.ledger.sqlite import schema
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.contract.records import BALANCED, pod, segment, step
from tests.unit.ledger.next_schema import NEXT, TODAY, begin_next_version

ROOT = Path(__file__).parents[3]
ONE, TWO = "CREATE TABLE one (a); INSERT INTO one VALUES (1);", "ALTER TABLE one ADD COLUMN b DEFAULT 2;"


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "some.db", isolation_level=None)) as connection:
        yield connection


def version(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def test_steps_are_named_by_number_and_meaning_without_gaps() -> None:
    names = {entry.name for entry in (files("gputally.ledger.sqlite") / "sql").iterdir()} - {schema.VIEWS}

    assert all(re.fullmatch(r"\d{4}_[a-z_]+\.sql", name) for name in names)
    assert [number for number, _ in schema.migrations()] == list(range(schema.FIRST + 1, TODAY + 1))


def test_a_new_ledger_has_the_newest_schema_and_our_mark(tmp_path: Path) -> None:
    with SqliteLedger(tmp_path / "ledger.db"):
        pass

    header = (tmp_path / "ledger.db").read_bytes()
    assert int.from_bytes(header[60:64], "big") == TODAY
    assert header[68:72] == b"GTLY"


def test_only_the_missing_steps_are_taken(connection: sqlite3.Connection) -> None:
    schema.migrate(connection, [(1, ONE)])
    schema.migrate(connection, [(1, "this is no SQL"), (2, TWO)])

    assert version(connection) == 2
    assert connection.execute("SELECT * FROM one").fetchall() == [(1, 2)]


def test_a_step_that_fails_leaves_nothing_of_the_steps_before_it_either(tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    broken = "CREATE TABLE two (a); INSERT INTO one VALUES (7); SELECT missing;"

    with closing(sqlite3.connect(path, isolation_level=None)) as connection, pytest.raises(sqlite3.OperationalError):
        schema.migrate(connection, [(1, ONE), (2, broken)])

    with closing(sqlite3.connect(path)) as connection:
        assert version(connection) == 0
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []


def test_a_failing_step_leaves_a_ledger_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.db"
    with SqliteLedger(path) as ledger:
        ledger.write(step(pod("a", segment(1000, None))))
    before = path.read_bytes()
    begin_next_version(monkeypatch, "DELETE FROM pod_segments; SELECT missing;")

    with pytest.raises(LedgerError, match="no such column: missing"), SqliteLedger(path):
        pass

    assert path.read_bytes() == before


HALF_DONE = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.executescript("PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN IMMEDIATE")
rows = ((str(number), "x" * 500) for number in range(2000))
connection.executemany("INSERT INTO known_values VALUES (?, ?, 0, 0)", rows)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_half_done_outside_wal_mode_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    record = pod("a", segment(1000, None))
    with SqliteLedger(path) as ledger:
        ledger.write(step(record))
    killed = subprocess.run([sys.executable, "-c", HALF_DONE, str(path)], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert Path(f"{path}-journal").stat().st_size, "nothing is left to be undone"

    with SqliteLedger(path) as ledger:
        assert ledger.saved(now_us=0).known_values == {}
        assert ledger.write(step(record)) == BALANCED


@pytest.mark.parametrize(
    ("step_", "missing"),
    [
        ("ALTER TABLE pods ADD COLUMN added INTEGER NOT NULL DEFAULT 7", None),
        (
            "ALTER TABLE pods ADD COLUMN added INTEGER",
            "the column added of the table pods is missing or has another type",
        ),
        ("ALTER TABLE missing ADD COLUMN added INTEGER", "it cannot be upgraded: no such table: missing"),
    ],
)
def test_an_older_ledger_lacks_what_its_upgrade_would_not_make(
    step_: str, missing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a schema in which pods have another column."""
    declared = schema.new_schema().replace(
        "class_name_text INTEGER", "added INTEGER NOT NULL, class_name_text INTEGER", 1
    )
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.create(connection)
        begin_next_version(monkeypatch, step_)
        monkeypatch.setattr(schema, "new_schema", lambda: declared)

        assert schema.missing_part(connection) == missing


def test_a_definition_in_a_file_is_compared_and_does_nothing_else(tmp_path: Path) -> None:
    """SQLite reads the first statement of a definition; whoever makes a file may add others."""
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.create(connection)
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = sql || ? WHERE name = 'pods'", (f"; ATTACH DATABASE '{other}' AS other",)
        )

        found = schema.missing_part(connection)

    assert (found, other.exists()) == ("it cannot be upgraded: You can only execute one statement at a time.", False)


@pytest.mark.parametrize("version", [TODAY, NEXT])
def test_whatever_a_ledger_of_any_schema_lacks_is_named(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each table, view and index that can be dropped, in turn; views first, since they may need each other."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        if version == TODAY:
            schema.create(connection)
        begin_next_version(monkeypatch, "CREATE TABLE added (id INTEGER PRIMARY KEY)")
        if version == NEXT:
            schema.create(connection)
        assert schema.version_of(connection) == version
        assert schema.missing_part(connection) is None
        parts = connection.execute("SELECT type, name FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        assert len(parts) > 5
        for kind, name in parts:
            connection.execute("BEGIN")
            connection.execute(f"DROP {kind} {name}")
            assert schema.missing_part(connection) == f"the {kind} {name} is missing"
            connection.execute("ROLLBACK")

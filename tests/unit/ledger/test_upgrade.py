"""An older ledger is brought to the present schema after a copy of it was made; a newer one is refused."""

import logging
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from gputally.errors import LedgerError
from gputally.ledger import schema
from gputally.ledger.sqlite import SqliteLedger
from tests.contract.records import pod, segment, step

NEWEST = schema.migrations()[-1][0]
OLDER = [number for number, _ in schema.migrations() if number < NEWEST]
PODS = ("pod-a", "pod-b", "pod-c")


class Usage(NamedTuple):
    """As shutil tells it."""

    total: int
    used: int
    free: int


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gputally.db"


def written_by(version: int, path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Make a ledger as a program of that schema left it, with rows; what is in it."""
    recent = path.with_name("recent.db")
    with SqliteLedger(recent) as ledger:
        ledger.bind("uid-1")
        ledger.write(step(*(pod(name, segment(1000, 2000)) for name in PODS)))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        schema.migrate(connection, schema.migrations()[:version])
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"ATTACH '{recent}' AS recent")
        for table in tables(connection):
            connection.execute(f"INSERT INTO main.{table} SELECT * FROM recent.{table}")
        return rows(connection)


def tables(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    return [name for (name,) in found]


def rows(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    return {table: connection.execute(f"SELECT * FROM main.{table}").fetchall() for table in tables(connection)}


def held(path: Path) -> tuple[int, dict[str, list[tuple[object, ...]]]]:
    """Schema and content."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0], rows(connection)


@pytest.mark.parametrize("version", OLDER)
def test_rows_survive_the_upgrade_and_the_backup_has_them_as_they_were(version: int, path: Path) -> None:
    before = written_by(version, path)

    with SqliteLedger(path) as ledger:
        assert sorted(entry.pod_uid for entry in ledger.overlapping(0, 10**12)) == sorted(PODS)

    now, content = held(path)
    assert now == NEWEST
    assert {table: content[table] for table in before} == before
    assert held(Path(f"{path}.before-{NEWEST:04}")) == (version, before)
    assert before["allocations"]


def test_a_ledger_of_this_schema_and_a_new_one_are_not_copied(path: Path) -> None:
    for _ in range(2):
        with SqliteLedger(path):
            pass

    assert sorted(each.name for each in path.parent.iterdir()) == [path.name, f"{path.name}.lock"]


def test_the_log_names_the_backup_and_how_to_go_back(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    written_by(1, path)

    with SqliteLedger(path):
        pass

    [entry] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert f"{path}.before-{NEWEST:04} is how it was: to go back, stop gputally" in entry


def test_the_way_back_works(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = written_by(NEWEST - 1, path)
    with SqliteLedger(path) as ledger:
        ledger.write(step(pod("later", segment(3000, None))))
    older = schema.migrations()[:-1]
    monkeypatch.setattr(schema, "migrations", lambda: older)

    with pytest.raises(LedgerError) as told, SqliteLedger(path):
        pass
    named = re.search(r"-shm and copy (\S+) over it, which lacks all that was accounted since", str(told.value))
    assert named
    for left in ("-wal", "-shm"):
        path.with_name(f"{path.name}{left}").unlink(missing_ok=True)
    shutil.copy(named[1], path)

    with SqliteLedger(path):
        pass
    assert held(path) == (NEWEST - 1, before)


def test_a_newer_ledger_is_refused_and_a_backup_that_is_too_new_as_well_is_not_proposed(path: Path) -> None:
    with SqliteLedger(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {NEWEST + 2}")
    shutil.copy(path, f"{path}.before-{NEWEST + 3:04}")
    content = path.read_bytes()

    with pytest.raises(LedgerError, match=r"run the newer gputally again \(no backup gputally\.db\.before-"):
        SqliteLedger(path)

    assert path.read_bytes() == content


def test_without_room_for_the_backup_nothing_is_upgraded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written_by(1, path)
    before = path.read_bytes()
    monkeypatch.setattr("gputally.ledger.backup.shutil.disk_usage", lambda _: Usage(10**9, 10**9 - (5 << 20), 5 << 20))

    with pytest.raises(LedgerError, match=r"needs 16 MiB beside it where 5 MiB are free; make room"):
        SqliteLedger(path)

    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.before-*"))


def test_a_backup_that_cannot_be_written_stops_the_upgrade(path: Path) -> None:
    before = written_by(1, path)
    Path(f"{path}.before-{NEWEST:04}").mkdir()

    with pytest.raises(LedgerError, match=r"cannot be upgraded, as no backup .* can be written"):
        SqliteLedger(path)

    assert held(path) == (1, before)
    assert not list(path.parent.glob("*.partial"))


def test_the_backup_is_as_private_as_the_ledger(path: Path) -> None:
    written_by(1, path)
    path.chmod(0o640)

    with SqliteLedger(path):
        pass

    assert Path(f"{path}.before-{NEWEST:04}").stat().st_mode & 0o777 == 0o640


def test_an_upgrade_that_is_tried_again_replaces_the_backup_of_the_first_try(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = written_by(1, path)
    steps = schema.migrations()
    with monkeypatch.context() as patch:
        patch.setattr(schema, "migrations", lambda: [*steps[:-1], (NEWEST, "SELECT missing;")])
        with pytest.raises(LedgerError, match="no such column"):
            SqliteLedger(path)

    with SqliteLedger(path):
        pass

    assert held(Path(f"{path}.before-{NEWEST:04}")) == (1, before)


def test_what_a_copy_left_behind_is_no_way_back(path: Path) -> None:
    with SqliteLedger(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {NEWEST + 1}")
    for ending in (".partial", ".partial-journal", "-wal"):
        Path(f"{path}.before-{NEWEST:04}{ending}").write_bytes(bytes(100))

    with pytest.raises(LedgerError, match=r"no backup gputally\.db\.before-"):
        SqliteLedger(path)


def test_the_leftovers_of_a_killed_upgrade_do_not_stand_in_the_way(path: Path) -> None:
    before = written_by(1, path)
    for ending in ("", ".partial"):
        Path(f"{path}.before-{NEWEST:04}{ending}").write_bytes(bytes(100))

    with SqliteLedger(path):
        pass

    assert held(Path(f"{path}.before-{NEWEST:04}")) == (1, before)

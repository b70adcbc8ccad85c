"""A ledger of an older schema is upgraded after a copy of it was made; a newer one is refused."""

import logging
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from gputally import cli
from gputally.errors import LedgerError
from gputally.ledger.sqlite import schema
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.contract.records import BALANCED, pod, segment, step
from tests.core.ledgers import segments_in
from tests.unit.ledger.next_schema import NEXT, PODS, TODAY, begin_next_version, content, written


class Usage(NamedTuple):
    """As shutil says it."""

    total: int
    used: int
    free: int


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gputally.db"


def backup_of(path: Path) -> Path:
    return Path(f"{path}.before-{NEXT:04}")


def test_rows_survive_the_upgrade_and_the_backup_has_them_as_they_were(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = written(path)
    begin_next_version(monkeypatch)

    with SqliteLedger(path) as ledger:
        assert [each.pod_uid for each in segments_in(path)] == sorted(PODS)
        assert ledger._connection.execute("SELECT DISTINCT added FROM pods").fetchall() == [(7,)]
    assert content(backup_of(path)) == before
    with closing(sqlite3.connect(path)) as connection:
        assert schema.version_of(connection) == NEXT


def test_a_ledger_of_this_schema_and_a_new_one_are_not_copied(path: Path) -> None:
    for _ in range(2):
        with SqliteLedger(path):
            pass

    assert sorted(each.name for each in path.parent.iterdir()) == [path.name, f"{path.name}.lock"]


def test_the_log_names_the_backup_and_how_to_go_back(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(path)
    begin_next_version(monkeypatch)

    with SqliteLedger(path):
        pass

    [entry] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert f"{backup_of(path)} is its backup: to roll back, stop the aggregator, restore it with 'gputally " in entry


def test_the_way_back_works(path: Path) -> None:
    before = written(path)
    with pytest.MonkeyPatch.context() as patch:
        begin_next_version(patch)
        with SqliteLedger(path) as ledger:
            ledger.write(step(at=3000, live=None))

    with pytest.raises(LedgerError) as told, SqliteLedger(path):
        pass
    named = re.search(r"or run 'gputally (.+)', which lacks everything accounted since the upgrade$", str(told.value))
    assert named
    assert cli.main(named[1].split()) == 0

    with SqliteLedger(path):
        pass
    assert content(path) == before


def test_a_newer_ledger_is_refused_and_a_backup_that_is_too_new_as_well_is_not_proposed(path: Path) -> None:
    with SqliteLedger(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {TODAY + 2}")
    shutil.copy(path, f"{path}.before-{TODAY + 3:04}")
    before = path.read_bytes()

    with pytest.raises(LedgerError, match=r"run the newer gputally again \(there is no backup gputally\.db\.before-"):
        SqliteLedger(path)

    assert path.read_bytes() == before


def test_without_room_for_the_backup_nothing_is_upgraded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(path)
    before = path.read_bytes()
    begin_next_version(monkeypatch)
    monkeypatch.setattr(
        "gputally.ledger.sqlite.copies.shutil.disk_usage",
        lambda _: Usage(10**9, 10**9 - (5 << 20), 5 << 20),
    )

    with pytest.raises(LedgerError, match=r"needs 16 MiB beside it, but 5 MiB are free; free some space"):
        SqliteLedger(path)

    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.before-*"))


def test_a_backup_that_cannot_be_written_stops_the_upgrade(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = written(path)
    begin_next_version(monkeypatch)
    backup_of(path).mkdir()

    with pytest.raises(LedgerError, match=r"cannot be upgraded because the backup .* cannot be written"):
        SqliteLedger(path)

    assert content(path) == before
    assert not list(path.parent.glob("*.partial"))


def test_the_backup_is_as_private_as_the_ledger(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(path)
    path.chmod(0o640)
    begin_next_version(monkeypatch)

    with SqliteLedger(path):
        pass

    assert backup_of(path).stat().st_mode & 0o777 == 0o640


def test_an_upgrade_that_is_tried_again_replaces_the_backup_of_the_first_try(path: Path) -> None:
    before = written(path)
    for step_, error in (("SELECT missing", "no such column"), ("SELECT 1", "")):
        with pytest.MonkeyPatch.context() as patch:
            begin_next_version(patch, step_)
            if error:
                with pytest.raises(LedgerError, match=error):
                    SqliteLedger(path)
                assert content(path) == before
            else:
                with SqliteLedger(path):
                    pass

    assert content(backup_of(path)) == before


def test_what_a_copy_left_behind_is_no_way_back(path: Path) -> None:
    with SqliteLedger(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {NEXT}")
    for ending in (".partial", ".partial-journal", "-wal"):
        Path(f"{backup_of(path)}{ending}").write_bytes(bytes(100))

    with pytest.raises(LedgerError, match=r"no backup gputally\.db\.before-"):
        SqliteLedger(path)


def test_the_leftovers_of_a_killed_upgrade_do_not_stand_in_the_way(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = written(path)
    begin_next_version(monkeypatch)
    for ending in ("", ".partial"):
        Path(f"{backup_of(path)}{ending}").write_bytes(bytes(100))

    with SqliteLedger(path):
        pass

    assert content(backup_of(path)) == before


def test_after_an_upgrade_pods_go_on_as_they_were(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = pod("live", segment(1000, None), end_us=None, end_by=None, gap=None)
    with SqliteLedger(path) as ledger:
        ledger.write(step(live, pods={"live": live}))
    begin_next_version(monkeypatch, "CREATE TABLE added (id INTEGER PRIMARY KEY)")

    with SqliteLedger(path) as ledger:
        assert ledger.saved(now_us=0).pods == (live,)
        ended = pod("live", segment(1000, 1500), revision=2)
        assert ledger.write(step(ended, pods={"live": ended})) == BALANCED

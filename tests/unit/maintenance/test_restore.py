import io
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from gputally.ledger.sqlite import schema
from gputally.ledger.sqlite.sqlite_ledger import SqliteLedger
from tests.unit.ledger.older_ledger import written_by
from tests.unit.maintenance.conftest import Ran, revised, written
from tests.unit.maintenance.test_backup import seconds

Run = Callable[..., Ran]


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Of the ledger's cluster, with pods of five seconds."""
    return written(tmp_path / "elsewhere.db", revision=5)


def kept(ledger: Path) -> Path:
    [found] = [each for each in ledger.parent.glob(f"{ledger.name}.before-restore-*") if each.suffix != "-wal"]
    return found


def test_the_backup_takes_the_place_of_the_ledger_which_is_kept(run: Run, ledger: Path, backup: Path) -> None:
    shown = run("restore", "--ledger", ledger, backup)

    assert shown == Ran(0, "", f"{ledger}: restored from {backup}; the previous ledger is {kept(ledger)}\n")
    assert seconds(ledger) == 5
    assert seconds(kept(ledger)) == 1
    assert seconds(backup) == 5


def test_a_backup_and_its_restore_give_the_same_bytes_again(run: Run, ledger: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    assert run("backup", "--ledger", ledger, copy).status == 0
    ledger.unlink()

    assert run("restore", "--ledger", ledger, copy) == Ran(0, "", f"{ledger}: restored from {copy}\n")

    assert ledger.read_bytes() == copy.read_bytes()


def test_the_previous_ledger_keeps_what_a_killed_process_left_in_its_log(
    run: Run, ledger: Path, backup: Path, tmp_path: Path
) -> None:
    crashed = tmp_path / "crashed.db"
    with SqliteLedger(ledger) as writer:
        writer.write(revised(3))
        for suffix in ("", "-wal"):
            shutil.copy(f"{ledger}{suffix}", f"{crashed}{suffix}")

    assert run("restore", "--ledger", crashed, backup).status == 0

    assert seconds(crashed) == 5
    assert seconds(kept(crashed)) == 3


def test_a_restored_ledger_can_be_written_again(run: Run, ledger: Path, backup: Path) -> None:
    run("restore", "--ledger", ledger, backup)

    with SqliteLedger(ledger) as writer:
        writer.write(revised(6))

    assert seconds(ledger) == 6


def test_it_may_come_from_standard_input(run: Run, ledger: Path, backup: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(backup.read_bytes())))

    assert run("restore", "--ledger", ledger, "-").status == 0
    assert seconds(ledger) == 5


def test_a_ledger_in_use_is_not_replaced(run: Run, ledger: Path, backup: Path) -> None:
    with SqliteLedger(ledger):
        found = run("restore", "--ledger", ledger, backup)

    assert found.status == 4
    assert "another process writes this ledger; stop it" in found.err
    assert seconds(ledger) == 1


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:10_000])


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {schema.migrations()[-1][0] + 1}")


def garbled(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size - 8192)
        file.write(b"garbage!" * 1024)


def unbalanced(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM pod_segments WHERE pod = 3")


def foreign(path: Path) -> None:
    path.write_text("no ledger" * 100)


@pytest.mark.parametrize("spoil", [cut, newer, garbled, unbalanced, foreign, Path.unlink])
def test_a_backup_that_cannot_be_used_changes_nothing(
    run: Run, ledger: Path, backup: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(backup)
    before = {each.name: each.read_bytes() for each in ledger.parent.iterdir()}

    found = run("restore", "--ledger", ledger, backup)

    assert found.status == 4
    assert found.err.endswith("; the ledger is unchanged\n")
    assert {each.name: each.read_bytes() for each in ledger.parent.iterdir()} == before


def test_a_backup_of_another_cluster_needs_force(run: Run, ledger: Path, tmp_path: Path) -> None:
    other = written(tmp_path / "other.db", cluster="cluster-2", revision=5)

    found = run("restore", "--ledger", ledger, other)
    assert found.status == 4
    assert "the backup is of cluster cluster-2, but" in found.err
    assert seconds(ledger) == 1

    assert run("restore", "--ledger", ledger, "--force", other).status == 0
    assert seconds(ledger) == 5


def test_a_damaged_ledger_is_replaced_and_kept_as_it_is(run: Run, ledger: Path, backup: Path) -> None:
    garbled(ledger)
    damaged = ledger.read_bytes()

    assert run("restore", "--ledger", ledger, backup).status == 0

    assert seconds(ledger) == 5
    assert kept(ledger).read_bytes() == damaged


def test_an_older_backup_is_upgraded_by_the_next_process(run: Run, tmp_path: Path) -> None:
    ledger, old = tmp_path / "gputally.db", tmp_path / "old.db"
    written_by(schema.migrations()[-1][0] - 1, old)

    assert "the aggregator upgrades it when it starts" in run("restore", "--ledger", ledger, old).err

    with SqliteLedger(ledger):
        pass
    assert seconds(ledger) > 0


@pytest.mark.parametrize("moment", ["link", "replace"])
def test_a_restore_that_is_killed_leaves_a_whole_ledger(
    run: Run, ledger: Path, backup: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    if moment == "link":
        monkeypatch.setattr("os.link", killed)
    else:
        monkeypatch.setattr(Path, "replace", killed)

    assert run("restore", "--ledger", ledger, backup).status == 130

    assert seconds(ledger) == 1

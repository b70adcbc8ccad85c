"""`gputally restore` replaces a ledger by a sound backup of the same cluster, or changes nothing."""

import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gputally.errors import LedgerError
from gputally.ledger.sqlite.integrity import mark, marker_of
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.contract.records import pod, segment, step
from tests.unit.commands.sample import (
    CLUSTER,
    LATEST_S,
    Result,
    Runner,
    abandoned,
    change,
    closed,
    damage,
    dump,
    in_use,
    names,
    pods,
)
from tests.unit.ledger.next_schema import TODAY, begin_next_version, written

ROOT = Path(__file__).parents[3]


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """A backup with one pod more than other ledgers."""
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "elsewhere" / "b.db"
    with in_use(path) as ledger:
        ledger.write(step(pod("only-in-backup", segment(1000, 2000)), at=LATEST_S))
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of the ledger."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir() if not each.name.endswith(("-shm", ".lock"))}


def kept(folder: Path) -> Path:
    [found] = [each for each in folder.iterdir() if re.fullmatch(r"l\.db\.before-restore-\d{8}T\d{6}Z", each.name)]
    return found


@pytest.mark.parametrize("made", [closed, abandoned])
def test_the_ledger_is_the_backup_and_the_previous_one_is_kept(
    run: Runner, home: Path, backup: Path, made: Callable[[Path], Path]
) -> None:
    path = made(home / "l.db")
    before = pods(path)

    status, out, err = run("restore", "--ledger", path, backup)

    assert (status, out) == (0, "")
    assert err == (
        f"{path}: restored, schema {TODAY}, accounted until 1970-01-01 01:40:00 UTC; the previous ledger is kept as "
        f"{kept(home)}\n"
    )
    assert names(home) == {"l.db", "l.db.begun", "l.db.lock", kept(home).name}
    assert dump(path) == dump(backup)
    assert pods(kept(home)) == before == pods(path) - {"only-in-backup"}
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        assert len(ledger.saved(now_us=0).pods) == 3


def test_a_backup_and_its_restore_change_nothing(run: Runner, home: Path) -> None:
    path = closed(home / "l.db")
    before = dump(path)
    assert run("backup", "--ledger", path, home / "b.db").status == 0

    assert run("restore", "--ledger", home / "new.db", home / "b.db").err.endswith("; there was no ledger before\n")
    assert dump(home / "new.db") == before
    assert run("ledger", "check", "--ledger", home / "new.db").status == 0


def test_a_backup_can_come_from_standard_input(
    run: Runner, home: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = closed(home / "l.db")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(backup.read_bytes())))

    assert run("restore", "--ledger", path, "-").status == 0
    assert dump(path) == dump(backup)


def test_a_terminal_is_no_backup(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)

    status, _, err = run("restore", "--ledger", home / "l.db", "-")

    assert (status, "redirect it: < backup.db" in err) == (2, True)


def refused(run: Runner, home: Path, *arguments: str | Path) -> Result:
    before = content(home)
    result = run("restore", "--ledger", home / "l.db", *arguments)
    assert (result.status, result.out, content(home)) == (4, "", before)
    return result


def test_a_ledger_that_a_process_writes_stays(run: Runner, home: Path, backup: Path) -> None:
    with in_use(home / "l.db"):
        err = refused(run, home, "--force", backup).err

    assert "another process writes this ledger; stop it first" in err
    assert "kubectl scale -n gputally deploy/gputally-aggregator --replicas 0" in err


def test_no_process_can_start_during_a_restore(
    run: Runner, home: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = closed(home / "l.db"), list[str]()
    replace = Path.replace

    def start(source: Path, target: Path) -> Path:
        with pytest.raises(Exception, match="another process writes this ledger"):
            SqliteLedger(path)
        seen.append(str(target))
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", start)

    assert run("restore", "--ledger", path, backup).status == 0
    assert seen == [str(path)]


def test_the_ledger_of_another_cluster_is_replaced_only_by_force(run: Runner, home: Path, backup: Path) -> None:
    path = closed(home / "l.db", "cluster-2")

    err = refused(run, home, backup).err
    assert f"{backup}: is a backup of the cluster cluster-1, but {path} belongs to cluster-2; nothing was" in err

    assert run("restore", "--ledger", path, "--force", backup).status == 0
    assert dump(path) == dump(backup)


def test_a_backup_of_a_newer_schema_is_refused(run: Runner, home: Path, backup: Path) -> None:
    closed(home / "l.db")
    change(backup, "PRAGMA user_version = 99")

    assert (
        f"has schema 99, this gputally reads up to {TODAY}; use the newer gputally; nothing"
        in refused(run, home, "--force", backup).err
    )


def test_a_backup_of_an_older_schema_is_restored_for_its_version(
    run: Runner, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = closed(home / "l.db", "uid-1")
    written(older := tmp_path / "older.db")
    begin_next_version(monkeypatch)

    assert f"restored, schema {TODAY}" in run("restore", "--ledger", path, older).err
    assert dump(path) == dump(older)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (damage, "is damaged: "),
        (lambda path: os.truncate(path, 80_000), "is damaged: "),
        (lambda path: change(path, "DELETE FROM pod_segments WHERE pod = 7"), "lacks segments"),
        (lambda path: path.write_bytes(b"text"), "is not an SQLite file"),
        (lambda path: change(path, "PRAGMA application_id = 1"), "is a database of another program"),
        (Path.unlink, "no such file; specify a file that 'gputally backup' wrote"),
    ],
)
def test_a_backup_that_is_not_sound_is_refused(
    run: Runner, home: Path, backup: Path, spoil: Callable[[Path], object], message: str
) -> None:
    closed(home / "l.db")
    spoil(backup)

    err = refused(run, home, "--force", backup).err

    assert message in err
    assert ".partial" not in err


def test_half_a_backup_on_standard_input_is_refused(
    run: Runner, home: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed(home / "l.db")
    half = backup.read_bytes()[: backup.stat().st_size // 2]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(half)))

    assert re.search("standard input: is damaged: .*; nothing was restored", refused(run, home, "-").err)


def test_a_damaged_ledger_is_replaced_and_kept_with_its_wal(run: Runner, home: Path, backup: Path) -> None:
    path = abandoned(home / "l.db")
    Path(f"{path}-wal").write_bytes(b"\xff" * 50_000)
    damage(path)
    (home / "l.db").write_bytes(path.read_bytes()[:100] + b"\xff" * 5000)
    before = path.read_bytes()

    assert run("restore", "--ledger", path, backup).status == 0
    assert dump(path) == dump(backup)
    assert kept(home).read_bytes()[200:] == before[200:]


def test_a_file_that_is_no_ledger_is_replaced_only_by_force(run: Runner, home: Path, backup: Path) -> None:
    (home / "l.db").write_text("precious")

    assert "is not an SQLite file" in refused(run, home, backup).err

    assert run("restore", "--ledger", home / "l.db", "--force", backup).status == 0
    assert kept(home).read_text() == "precious"


def test_the_ledger_is_not_its_own_backup(run: Runner, home: Path) -> None:
    path = closed(home / "l.db")

    assert "is the ledger itself" in refused(run, home, path).err


def test_the_wal_of_a_lost_ledger_is_not_applied_to_the_backup(run: Runner, home: Path, backup: Path) -> None:
    path = abandoned(home / "l.db")
    path.unlink()

    assert run("restore", "--ledger", path, backup).status == 0
    assert dump(path) == dump(backup)
    assert any(name.endswith("Z-wal") for name in names(home))


def missing(path: Path) -> Path:
    """A ledger of which only the WAL is left."""
    abandoned(path).unlink()
    return path


def emptied(path: Path) -> Path:
    """A ledger of which only the WAL is left, beside an empty file."""
    missing(path).touch()
    return path


@pytest.mark.parametrize("is_marked", [False, True])
@pytest.mark.parametrize("made", [missing, emptied])
def test_a_restore_of_a_lost_ledger_that_is_killed_anywhere_leaves_it_lost_or_restored(
    tmp_path: Path, backup: Path, made: Callable[[Path], Path], *, is_marked: bool
) -> None:
    """The marker may be missing, if it could not be written: then the WAL alone says that there was an accounting."""
    (tmp_path / "from").mkdir()
    path = made(tmp_path / "from" / "l.db")
    if is_marked:
        mark(path)

    places = killed_restores(path, backup, tmp_path / "killed")

    found = [was_restored(place / "l.db", backup) for place in places]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (False, True)


def was_restored(path: Path, backup: Path) -> bool:
    """Whether the ledger is the backup; no other one opens."""
    restored = path.exists() and path.stat().st_size > 0
    if not restored:
        with pytest.raises(LedgerError, match="the ledger was lost, and nothing was changed"):
            SqliteLedger(path)
    else:
        assert pods(path) == pods(backup)
        with SqliteLedger(path):
            assert marker_of(path).exists()
    return restored


def killed_restores(path: Path, backup: Path, folder: Path) -> list[Path]:
    """The folders of restores, each of which was killed one step later."""
    folder.mkdir()
    command = [sys.executable, "-m", "tests.fakes.killed_restores", str(path), str(backup), str(folder)]
    points = int(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
    assert points > 10
    return [folder / str(number) for number in range(points)]


@pytest.mark.parametrize("made", [closed, abandoned])
def test_a_restore_that_is_killed_anywhere_leaves_the_previous_ledger_or_the_backup(
    tmp_path: Path, backup: Path, made: Callable[[Path], Path]
) -> None:
    (tmp_path / "from").mkdir()
    path = made(tmp_path / "from" / "l.db")
    before, restored = pods(path), pods(backup)

    found = list[bool]()
    for place in killed_restores(path, backup, tmp_path / "killed"):
        left = place / "l.db"
        found.append(pods(left) == restored)
        assert pods(left) in (before, restored), place.name
        with SqliteLedger(left) as ledger:
            assert sum(1 for _ in ledger.check()) > 0
        shutil.rmtree(place)
    assert found == sorted(found)
    assert not found[0]

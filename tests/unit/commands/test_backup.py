"""`gputally backup` writes a complete ledger, or none, whatever happens meanwhile."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import count, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gputally.errors import LedgerError
from gputally.ledger.sqlite import backup, copies
from gputally.ledger.sqlite.backup import back_up_to_file
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.contract.records import pod, segment, step
from tests.unit.commands.sample import Runner, abandoned, change, closed, damage, dump, in_use, names, pods

ROOT = Path(__file__).parents[3]
KILLED = """
import os, signal, sys
from pathlib import Path
from gputally.ledger.sqlite.backup import back_up_to_file
from gputally.commands.progress import ending_cleanly
def report(text):
    if text.startswith(sys.argv[3]):
        os.kill(os.getpid(), int(sys.argv[4]))
with ending_cleanly():
    back_up_to_file(Path(sys.argv[1]), Path(sys.argv[2]), force=True, check=True, report=report)
"""


def quiet(_: str) -> None:
    """No progress."""


@pytest.mark.parametrize("made", [closed, abandoned])
def test_a_backup_equals_the_ledger(run: Runner, tmp_path: Path, made: Callable[[Path], Path]) -> None:
    path, target = made(tmp_path / "l.db"), tmp_path / "backup.db"
    before = names(tmp_path)

    status, out, err = run("backup", "--ledger", path, target)

    assert (status, out, names(tmp_path)) == (0, "", before | {"backup.db"})
    assert err.startswith(f"{path}: backed up to {target}: ")
    assert err.endswith(" KiB, accounted until 1970-01-01 01:40:00 UTC, no damage found\n")
    assert dump(target) == dump(path)
    assert target.read_bytes()[18:20] == b"\x01\x01", "it needs a WAL to be read"


def test_all_slices_are_of_one_instant_while_another_connection_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "PAGES", 3)
    remaining, number = list[int](), count()
    with in_use(tmp_path / "l.db") as ledger:
        expected = dump(tmp_path / "l.db")

        def write(_: int, left: int, _total: int) -> None:
            ledger.write(step(pod(f"later-{next(number)}", segment(1000, 2000))))
            remaining.append(left)
            assert len(remaining) < 1000, "it starts again and again"

        copy_into = copies.copy_into
        monkeypatch.setattr(backup, "copy_into", lambda target, source, _: copy_into(target, source, write))
        back_up_to_file(tmp_path / "l.db", tmp_path / "b.db", force=False, check=True, report=quiet)

    assert len(remaining) > 10
    assert all(before > after for before, after in pairwise(remaining))
    assert dump(tmp_path / "b.db") == expected


def test_backups_beside_a_thread_that_never_stops_writing_are_sound(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "PAGES", 20)
    stop, path = threading.Event(), tmp_path / "l.db"
    with in_use(path) as ledger:

        def write() -> None:
            for number in count():
                if stop.is_set():
                    return
                ledger.write(step(pod(f"later-{number}", segment(1000, 2000))))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for number in range(5):
                assert run("backup", "--ledger", path, tmp_path / f"b{number}.db").status == 0
        finally:
            stop.set()
            writer.join()

    found = [pods(tmp_path / f"b{number}.db") for number in range(5)]
    assert all(before < after for before, after in pairwise(found))
    for number in range(5):
        assert run("ledger", "check", "--ledger", tmp_path / f"b{number}.db").status == 0


def process(path: Path, *arguments: str, **more: Any) -> subprocess.CompletedProcess[bytes]:  # noqa: ANN401 - passed on
    command = [sys.executable, "-m", "gputally", *arguments]
    environment = os.environ | {"GPUTALLY_LEDGER": str(path)}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, **more)


def test_standard_output_has_the_same_bytes_as_a_file(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with in_use(path):
        before = names(tmp_path)
        sent = process(path, "backup", "-").stdout

        assert names(tmp_path) == before
        assert run("backup", "--ledger", path, tmp_path / "b.db").status == 0
    assert sent == (tmp_path / "b.db").read_bytes()


def test_a_full_disk_behind_standard_output_is_an_error(tmp_path: Path) -> None:
    path = closed(tmp_path / "l.db")
    command = [sys.executable, "-m", "gputally", "backup", "--ledger", str(path), "-"]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert (ended.returncode, names(tmp_path)) == (4, {"l.db"})
    assert "standard output: the backup cannot be written: No space left on device; it is incomplete\n" in ended.stderr


def test_a_terminal_gets_no_backup(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    assert run("backup", "--ledger", closed(tmp_path / "l.db"), "-") == (
        2,
        "",
        "gputally: backup -: standard output is a terminal; redirect it: > backup.db\n",
    )


@pytest.mark.parametrize("stage", ["copying", "checking all pages", "checking the rows"])
def test_a_backup_that_is_killed_leaves_the_target_as_it_was(run: Runner, tmp_path: Path, stage: str) -> None:
    path, target = closed(tmp_path / "l.db"), tmp_path / "b.db"
    command = [sys.executable, "-c", KILLED, str(path), str(target), stage, str(int(signal.SIGKILL))]

    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    assert not target.exists()

    target.write_text("an older backup")
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    assert target.read_text() == "an older backup"

    assert run("backup", "--ledger", path, "--force", target).status == 0
    assert names(tmp_path) == {"l.db", "b.db"}
    assert dump(target) == dump(path)


def test_what_another_program_left_does_not_get_into_a_backup(run: Runner, tmp_path: Path) -> None:
    path, target = closed(tmp_path / "l.db"), tmp_path / "b.db"
    Path(f"{target}.partial").write_bytes(b"text" * 1_000_000)
    Path(f"{target}.partial-wal").write_bytes(b"text")

    assert run("backup", "--ledger", path, target).status == 0
    assert (names(tmp_path), dump(target)) == ({"l.db", "b.db"}, dump(path))


def test_sigterm_removes_what_is_incomplete(tmp_path: Path) -> None:
    path = closed(tmp_path / "l.db")
    command = [sys.executable, "-c", KILLED, str(path), str(tmp_path / "b.db"), "checking", str(int(signal.SIGTERM))]

    ended = subprocess.run(command, cwd=ROOT, check=False, stderr=subprocess.PIPE, text=True)

    assert "KeyboardInterrupt" in ended.stderr
    assert names(tmp_path) == {"l.db"}


def test_an_existing_file_is_overwritten_only_by_force(run: Runner, tmp_path: Path) -> None:
    path, target = closed(tmp_path / "l.db"), tmp_path / "b.db"
    target.write_text("precious")
    Path(f"{target}-wal").write_text("of the old file")

    status, _, err = run("backup", "--ledger", path, target)
    assert (status, target.read_text()) == (4, "precious")
    assert err == f"gputally: {target}: exists already; choose another file, or overwrite it with --force\n"

    assert run("backup", "--ledger", path, "--force", target).status == 0
    assert names(tmp_path) == {"l.db", "b.db"}


def test_a_ledger_is_never_overwritten_by_a_backup(run: Runner, tmp_path: Path) -> None:
    path = closed(tmp_path / "l.db")
    (tmp_path / "link.db").symlink_to(path)
    before = path.read_bytes()

    assert "is the ledger itself" in run("backup", "--ledger", path, "--force", tmp_path / "link.db").err
    assert path.read_bytes() == before
    with in_use(tmp_path / "other.db"):
        assert "another process writes" in run("backup", "--ledger", path, "--force", tmp_path / "other.db").err
    assert "is a directory" in run("backup", "--ledger", path, "--force", tmp_path).err


def test_two_backups_to_one_target_do_not_mix(tmp_path: Path) -> None:
    path, target = closed(tmp_path / "l.db"), tmp_path / "b.db"

    def again(text: str) -> None:
        if text.startswith("checking"):
            with pytest.raises(LedgerError, match="another process writes it now"):
                back_up_to_file(path, target, force=False, check=True, report=quiet)

    back_up_to_file(path, target, force=False, check=True, report=again)

    assert dump(target) == dump(path)


def test_a_damaged_ledger_is_copied_only_as_evidence(run: Runner, tmp_path: Path) -> None:
    path, target = closed(tmp_path / "l.db"), tmp_path / "b.db"
    damage(path)

    status, _, err = run("backup", "--ledger", path, target)
    assert (status, names(tmp_path)) == (4, {"l.db"})
    assert "is damaged: " in err
    assert "--no-check" in err

    status, _, err = run("backup", "--ledger", path, "--no-check", target)
    assert (status, err.endswith(", not checked\n")) == (0, True)
    assert target.read_bytes()[4096:] == path.read_bytes()[4096:]


def test_rows_that_contradict_each_other_are_no_backup(run: Runner, tmp_path: Path) -> None:
    change(closed(tmp_path / "l.db"), "DELETE FROM pod_segments WHERE pod = 7")

    assert run("backup", "--ledger", tmp_path / "l.db", tmp_path / "b.db").status == 4
    assert names(tmp_path) == {"l.db"}


class Disk(NamedTuple):
    total: int
    used: int
    free: int


def test_without_free_space_nothing_is_written(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = closed(tmp_path / "l.db")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(1 << 30, 1 << 30, 1 << 19))

    status, _, err = run("backup", "--ledger", path, tmp_path / "b.db")

    assert (status, names(tmp_path)) == (4, {"l.db"})
    assert err.startswith(f"gputally: {tmp_path}: a backup needs 1 MiB here, but 0 MiB are free; free some space, or ")


def test_a_folder_that_cannot_be_written_is_an_error(run: Runner, tmp_path: Path) -> None:
    status, _, err = run("backup", "--ledger", closed(tmp_path / "l.db"), tmp_path / "no" / "b.db")

    assert status == 4
    assert err.endswith("b.db: cannot be written: No such file or directory; choose a writable folder\n")


def test_a_ledger_that_changes_while_it_is_read_as_fixed_gives_no_backup(run: Runner, tmp_path: Path) -> None:
    path = closed(tmp_path / "l.db")

    def write(text: str) -> None:
        if text.startswith("copying"):
            with SqliteLedger(path) as ledger:
                ledger.write(step(pod("later", segment(1000, 2000))))

    with pytest.raises(LedgerError, match="was changed while it was read, so the result is void; run the command"):
        back_up_to_file(path, tmp_path / "b.db", force=False, check=True, report=write)
    assert not (tmp_path / "b.db").exists()
    assert run("backup", "--ledger", path, tmp_path / "b.db").status == 0

"""A ledger that was lost is noticed: the accounting does not restart at 0, and what is left of it stays."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gputally.errors import LedgerError
from gputally.ledger.open import open_reader
from gputally.ledger.open_to_write import open_import_ledger
from gputally.ledger.records import Window
from gputally.ledger.sqlite import schema
from gputally.ledger.sqlite.backup import back_up_to_file
from gputally.ledger.sqlite.file import reading
from gputally.ledger.sqlite.info import accounted_us
from gputally.ledger.sqlite.integrity import mark, marker_of
from gputally.ledger.sqlite.restore import restore
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.contract.records import pod, segment, step
from tests.core.ledgers import segments_in
from tests.unit.ledger.next_schema import NEXT, PODS, begin_next_version, written

ROOT = Path(__file__).parents[3]
REMEDY = (
    "Stop the aggregator and restore a backup with 'gputally restore'; to start a new accounting on purpose, move away "
    "ledger.db, ledger.db-wal and ledger.db.begun"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with an accounting, as a process left it that has just ended."""
    path = tmp_path / "home" / "ledger.db"
    path.parent.mkdir()
    with SqliteLedger(path) as ledger:
        ledger.write(step(pod("a", segment(1000, 2000))))
    return path


def unseen(_: str) -> None:
    """Of progress."""


def has_begun(path: Path) -> bool:
    """Whether the ledger contains an accounting."""
    with reading(path) as connection:
        return accounted_us(connection) is not None


def content(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir() if not each.name.endswith(".lock")}


def refusal(path: Path, how: Callable[[Path], object] = SqliteLedger) -> str:
    """Why it is not opened; it changes nothing."""
    before = content(path.parent)
    with pytest.raises(LedgerError) as error:
        how(path)
    assert content(path.parent) == before
    return str(error.value)


@pytest.mark.parametrize(("lose", "state"), [(Path.unlink, "missing"), (lambda path: path.write_bytes(b""), "empty")])
def test_a_file_that_is_missing_or_empty_where_there_was_one_stops_the_start(
    path: Path, lose: Callable[[Path], object], state: str
) -> None:
    lose(path)

    evidence = "but ledger.db.begun says that it contained an accounting"
    assert refusal(path) == f"{path}: is {state}, {evidence}: the ledger was lost, and nothing was changed. {REMEDY}"
    assert refusal(path, lambda path: open_reader(str(path))) == refusal(path)
    assert refusal(path, read) == refusal(path)


def read(path: Path) -> None:
    with reading(path):
        pass


@pytest.mark.parametrize(("lose", "state"), [(Path.unlink, "missing"), (lambda path: path.write_bytes(b""), "empty")])
def test_a_wal_whose_file_is_lost_stops_the_start_and_stays(
    path: Path, lose: Callable[[Path], object], state: str
) -> None:
    """SQLite would delete the WAL of an empty file when it opens it."""
    lose(path)
    marker_of(path).unlink()
    Path(f"{path}-wal").write_bytes(b"x" * 5000)

    assert f"is {state}, but ledger.db-wal has 5000 bytes that belong to it" in refusal(path)


def test_a_file_without_the_accounting_that_it_had_stops_the_start(path: Path) -> None:
    """Its WAL, which had all of the accounting, was removed."""
    path.unlink()
    marker_of(path).unlink()
    with SqliteLedger(path):
        pass
    mark(path)

    assert "contains no accounting, but ledger.db.begun says that it did" in refusal(path)


def test_a_replaced_file_of_an_older_schema_is_not_upgraded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.unlink()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        schema.create(connection)
    begin_next_version(monkeypatch)

    assert refusal(path).endswith(f"it or its WAL was replaced, and nothing was changed. {REMEDY}")


def test_the_remedy_for_a_corrupt_ledger_leads_to_a_new_accounting(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 5000)

    message = refusal(path)

    assert message.endswith(f"it was left untouched. {REMEDY}")
    assert refusal(path, has_begun).endswith(REMEDY)
    for name in message.split("move away ")[1].replace(" and", ",").split(", "):
        (path.parent / name).unlink(missing_ok=True)
    with SqliteLedger(path):
        assert not has_begun(path)


def test_who_removes_the_marker_starts_at_0(path: Path) -> None:
    for each in (path, marker_of(path)):
        each.unlink()

    with SqliteLedger(path):
        assert not marker_of(path).exists(), "nothing was accounted yet"
    assert not has_begun(path)


def test_a_ledger_without_a_marker_is_marked_when_it_is_opened(path: Path) -> None:
    marker_of(path).unlink()

    with SqliteLedger(path):
        assert "restore" in marker_of(path).read_text()


def test_a_marker_that_cannot_be_written_stops_nothing(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    marker_of(path).unlink()
    marker_of(path).symlink_to("missing/folder")

    with SqliteLedger(path) as ledger:
        ledger.write(step(pod("b", segment(1000, 2000))))

    assert f"{marker_of(path)}: cannot be written: No such file or directory; it is tried again" in caplog.text


def test_a_restore_brings_a_lost_ledger_back(path: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    back_up_to_file(path, backup, force=False, check=True, report=unseen)
    path.write_bytes(b"")
    Path(f"{path}-wal").write_bytes(b"x" * 5000)

    kept = restore(backup, path, force=False, report=unseen).kept

    assert kept
    assert Path(f"{kept}-wal").stat().st_size == 5000
    assert len(segments_in(path)) == 1
    with SqliteLedger(path):
        assert marker_of(path).exists()


def test_a_backup_without_accounting_takes_the_marker_with_it(path: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.db"
    with SqliteLedger(empty):
        pass

    restore(empty, path, force=True, report=unseen)

    with SqliteLedger(path):
        assert not marker_of(path).exists()


def test_imported_jobs_are_not_marked_since_they_can_be_imported_again(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    for _ in range(2):
        with open_import_ledger(str(path)) as ledger:
            ledger.add({}, {}, Window(0, 1000))
        assert not marker_of(path).exists()
        path.unlink()


def test_a_start_that_is_killed_at_any_step_is_followed_by_one_that_works(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fakes.killed_starts", str(tmp_path)]
    count = int(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)

    assert count > 100
    marked = []
    for number in range(count + 1):
        path = tmp_path / str(number) / "l.db"
        marked.append(marker_of(path).exists())
        with SqliteLedger(path) as ledger:
            assert has_begun(path) or not marked[-1]
            ledger.write(step(pod("c", segment(1000, None))))
        assert marker_of(path).exists()
    assert marked == sorted(marked)
    assert (marked[0], marked[-1]) == (False, True)


def test_an_upgrade_that_is_killed_at_any_step_loses_no_accounting(tmp_path: Path) -> None:
    """Between its commit and its marker, too: a copy of a ledger has none."""
    written(older := tmp_path / "older.db")
    (folder := tmp_path / "killed").mkdir()
    command = [sys.executable, "-m", "tests.fakes.killed_starts", str(folder), str(older)]
    count = int(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)

    unmarked = 0
    for number in range(count + 1):
        path = folder / str(number) / "l.db"
        with closing(sqlite3.connect(path)) as connection:
            is_upgraded = schema.version_of(connection) == NEXT
        unmarked += is_upgraded and not marker_of(path).exists()
        with pytest.MonkeyPatch.context() as patch:
            begin_next_version(patch)
            with SqliteLedger(path):
                assert {each.pod_uid for each in segments_in(path)} >= set(PODS)
            assert marker_of(path).exists()
    assert unmarked

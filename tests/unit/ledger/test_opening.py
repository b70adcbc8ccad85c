"""A file that is not ours to write, or not sound, is refused with one clear message and stays as it is."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from gputally.errors import LedgerError
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.contract.records import pod, segment, step
from tests.core.ledgers import segments_in

ROOT = Path(__file__).parents[3]
NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of some pages."""
    path = tmp_path / "ledger.db"
    with SqliteLedger(path) as ledger:
        ledger.write(step(*(pod(f"pod-{number}", segment(1000, None)) for number in range(200))))
    return path


def refusal(path: Path) -> str:
    """Why the ledger is not opened."""
    with pytest.raises(LedgerError) as refused, SqliteLedger(path):
        pass
    assert "\n" not in str(refused.value)
    return str(refused.value)


def fill_with_garbage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    intact = len(content) // 4
    content[intact:] = b"\xa5" * (len(content) - intact)
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: -3 * 4096 - 100])


def make_text(path: Path) -> None:
    path.write_text("kind: PriceBook\n" * 100)


def make_foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA journal_mode = WAL; CREATE TABLE bookmarks (url);")


def make_old(path: Path, *, identity: int = 0x67746C79) -> None:
    """As a development version wrote it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {identity}")


def make_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 999")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (fill_with_garbage, "is corrupt"),
        (truncate, "is corrupt"),
        (make_text, "is not an SQLite file"),
        (make_foreign, "is a database of another program"),
        (make_old, "was written by a development version before 0.1.0"),
        (make_newer, "has schema 999, this gputally reads up to"),
    ],
)
def test_a_file_that_is_refused_is_left_untouched(path: Path, spoil: Callable[[Path], None], reason: str) -> None:
    spoil(path)
    before = path.read_bytes(), path.stat().st_mtime_ns

    message = refusal(path)

    assert message.startswith(f"{path}: {reason}")
    assert "left untouched" in message
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


@pytest.mark.parametrize(("identity", "commit"), [(0x67707574, "2e81ba83"), (0x67746C79, "25890acc")])
def test_a_ledger_of_a_development_version_names_its_last_reader_and_how_to_start_again(
    path: Path, identity: int, commit: str
) -> None:
    make_old(path, identity=identity)

    assert refusal(path).endswith(
        f"and was left untouched; the last commit that reads it is {commit}. To start a new accounting, move away "
        "ledger.db, ledger.db-wal and ledger.db.begun"
    )


def test_what_was_refused_can_be_opened_by_its_owner_afterwards(path: Path) -> None:
    sound = path.read_bytes()
    fill_with_garbage(path)
    refusal(path)
    path.write_bytes(sound)

    with SqliteLedger(path):
        assert len(segments_in(path)) == 200


def test_a_folder_is_no_ledger(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path}: is a directory; specify a file in it"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "ledger.db"

    assert refusal(path) == (
        f"{path}: cannot be locked: No such file or directory; choose a directory this user can write to"
    )


def test_characters_that_mean_something_in_addresses_are_part_of_the_name(tmp_path: Path) -> None:
    path = tmp_path / "50% of it? #1.db"
    for _ in range(2):
        with SqliteLedger(path) as ledger:
            ledger.write(step(pod("a", segment(1000, None))))

    assert sorted(each.name for each in tmp_path.iterdir()) == [path.name, f"{path.name}.begun", f"{path.name}.lock"]


def opened_by_another(path: Path) -> str:
    """What another process says on opening the ledger."""
    command = [sys.executable, "-c", OPENING, str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


OPENING = """
import sys
from pathlib import Path
from gputally.errors import LedgerError
from gputally.ledger.sqlite.writer import SqliteLedger
try:
    with SqliteLedger(Path(sys.argv[1])):
        print("opened", end="")
except LedgerError as error:
    print(error, end="")
"""


def test_a_ledger_that_another_process_writes_is_refused_until_that_process_ends(path: Path) -> None:
    with SqliteLedger(path):
        assert opened_by_another(path) == (
            f"{path}: another process writes this ledger; stop it, or use another ledger"
        )
    assert opened_by_another(path) == "opened"


def test_the_lock_of_a_killed_process_is_free(path: Path) -> None:
    code = "import sys, time; from pathlib import Path; from gputally.ledger.sqlite.writer import SqliteLedger"
    code += "\nwith SqliteLedger(Path(sys.argv[1])): print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, str(path)], cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)

    assert opened_by_another(path) == "opened"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "reason"),
    [
        (0o777, 0o600, "{path}: Permission denied; it must be readable and writable"),
        (0o777, 0o644, "{path}: cannot be opened: attempt to write a readonly database; check its permissions"),
        (0o755, 0o666, "{path}: cannot be locked: Permission denied; choose a directory this user can write to"),
    ],
)
def test_missing_rights_are_told_at_the_start(path: Path, folder_mode: int, file_mode: int, reason: str) -> None:
    for parent in path.parents:
        if parent.name and parent.stat().st_mode & 0o777 == 0o700:  # pytest keeps its folders to itself
            parent.chmod(0o711)
    Path(f"{path}.lock").unlink()
    path.chmod(file_mode)
    path.parent.chmod(folder_mode)
    before = path.read_bytes()

    with as_nobody():
        message = refusal(path)

    assert message.startswith(reason.format(path=path))
    assert path.read_bytes() == before


@contextmanager
def as_nobody() -> Iterator[None]:
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_ledger_serves_the_cluster_it_is_bound_to_and_no_other(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        ledger.bind("uid-1")
    with SqliteLedger(path) as ledger:
        ledger.bind("uid-1")
        with pytest.raises(
            LedgerError, match="belongs to the cluster uid-1, this one is uid-2; use one ledger per cluster"
        ):
            ledger.bind("uid-2")
        ledger.bind("uid-1")


def test_working_state_of_another_version_is_told_as_such(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO working VALUES ('pod', 'a', '{}')")

    with SqliteLedger(path) as ledger, pytest.raises(LedgerError, match="has data that this gputally cannot read"):
        ledger.saved(now_us=0)


def test_corruption_that_appears_while_the_ledger_is_open_is_no_reason_to_try_again(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        fill_with_garbage(path)
        ledger._connection.execute("PRAGMA cache_size = 0")
        with pytest.raises(LedgerError, match="is corrupt") as told:
            ledger.saved(now_us=0)
    assert type(told.value) is LedgerError

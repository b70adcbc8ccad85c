"""Opening a SQLite ledger to read it: while another process writes it, and when it is none that can be read."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from gputally.accounting.changes import Changes
from gputally.errors import LedgerError
from gputally.ledger.open import open_reader
from gputally.ledger.open_to_write import open_ledger
from gputally.ledger.sqlite import schema
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.units import GPU_SECOND
from tests.contract.records import pod, segment, step

PODS = 20
STEPS = 150
READER = """
import sys
from gputally.ledger.open import open_reader
from gputally.ledger.records import Window

with open_reader(sys.argv[1]) as reader:
    for line in sys.stdin:
        print(*(each.gpu_time for each in reader.allocated(Window(0, 10**15), ())), flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def refusal(path: Path) -> str:
    with pytest.raises(LedgerError) as told:
        open_reader(str(path))
    return str(told.value)


def revised(revision: int) -> Changes:
    """All pods as long as they are old."""
    return step(*(pod(f"uid-{n}", segment(1000, 1000 + revision), revision=revision) for n in range(PODS)))


def test_another_process_reads_each_step_whole_while_it_is_written(path: Path) -> None:
    seen = set[int]()
    with SqliteLedger(path) as ledger:
        ledger.write(revised(1))
        with subprocess.Popen(
            [sys.executable, "-c", READER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin
            assert process.stdout
            for revision in range(2, STEPS):
                process.stdin.write("read\n")
                process.stdin.flush()
                ledger.write(revised(revision))
                seen.add(int(process.stdout.readline()))
            process.stdin.close()

    assert process.returncode == 0
    assert {total % (PODS * GPU_SECOND) for total in seen} == {0}
    assert len(seen) > STEPS / 2


def test_reading_changes_no_byte_of_the_file(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        ledger.write(revised(1))
    before = path.read_bytes()

    with open_reader(str(path)) as reader:
        assert reader.state().accounting_start_us
    assert path.read_bytes() == before


def test_what_is_no_ledger_cannot_be_read(path: Path) -> None:
    assert refusal(path) == f"{path}: no such file; use the file of --ledger of the aggregator"
    path.write_text("no ledger" * 100)
    assert refusal(path) == f"{path}: is not an SQLite file; it was left untouched, choose another path"


def test_a_ledger_of_another_schema_is_not_read_by_guesses(path: Path) -> None:
    newest = schema.newest_schema()
    with SqliteLedger(path):
        pass
    for version, remedy in ((newest - 1, "start its aggregator, which upgrades it"), (newest + 1, "run the newer")):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA user_version = {version}")
        assert refusal(path).startswith(f"{path}: has schema {version}, but this gputally reads {newest}; {remedy}")


def test_a_corrupt_ledger_is_told_as_such(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        ledger.write(revised(1))
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"garbage!" * 8192)

    with open_reader(str(path)) as reader, pytest.raises(LedgerError, match="is corrupt"):
        reader.state()


@pytest.mark.parametrize("prefix", ["", "sqlite:///"])
def test_a_path_and_its_url_name_the_same_ledger(path: Path, prefix: str) -> None:
    with open_ledger(f"{prefix}{path}") as ledger:
        ledger.write(revised(1))

    with open_reader(str(path)) as reader:
        assert reader.state().accounting_start_us


def test_a_url_of_another_kind_of_ledger_is_refused() -> None:
    with pytest.raises(LedgerError, match="not a supported type of ledger; use a path, or"):
        open_ledger("postgresql://host/gputally")

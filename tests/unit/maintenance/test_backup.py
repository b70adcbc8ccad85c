import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from gputally.errors import LedgerError
from gputally.ledger.open import open_reader
from gputally.ledger.records import Window
from gputally.ledger.sqlite import integrity
from gputally.ledger.sqlite.maintenance import ledger_copy
from gputally.ledger.sqlite.maintenance.ledger_copy import copied
from gputally.ledger.sqlite.sqlite_ledger import SqliteLedger
from gputally.model.units import GPU_SECOND
from tests.unit.maintenance.conftest import PODS, Ran, contents, revised

Run = Callable[..., Ran]
EVER = Window(0, 10**15)


def seconds(path: Path) -> float:
    """The length of each pod of the ledger."""
    for _ in integrity.slices(path):
        pass
    with open_reader(str(path)) as reader:
        [total] = reader.allocated(EVER, ())
    return total.gpu_time / GPU_SECOND / PODS


def test_a_backup_is_the_ledger_at_one_moment_although_it_is_written_all_the_time(
    ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_copy, "_PAGES", 1)
    with SqliteLedger(ledger) as writer:
        revision = 1

        def write_between_two_pages(_done: int, _total: int) -> None:
            nonlocal revision
            assert revision < 1000, "the copy begins anew with each write"
            revision += 1
            writer.write(revised(revision))

        with copied(ledger, tmp_path, write_between_two_pages) as copy:
            assert revision > 20
            assert seconds(copy.path) == 1
        assert seconds(ledger) == revision


def test_it_has_what_is_only_in_the_write_ahead_log(run: Run, ledger: Path, tmp_path: Path) -> None:
    with SqliteLedger(ledger) as writer:
        writer.write(revised(7))
        assert run("backup", "--ledger", ledger, tmp_path / "copy.db").status == 0

    assert seconds(tmp_path / "copy.db") == 7
    assert [each.name for each in tmp_path.glob("copy.db*")] == ["copy.db"]


def test_it_says_how_large_it_is_and_until_when_it_is_accounted(run: Run, ledger: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"

    shown = run("backup", "--ledger", ledger, target)

    size = target.stat().st_size / 2**20
    assert shown == Ran(0, "", f"{target}: {size:,.1f} MiB, accounted until 1970-01-01 01:23:20 UTC\n")


def test_a_failed_backup_leaves_nothing(ledger: Path, tmp_path: Path) -> None:
    before = contents(tmp_path)

    def interrupted(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), copied(ledger, tmp_path, interrupted):
        pass
    assert contents(tmp_path) == before


def test_an_existing_file_is_overwritten_only_by_force(run: Run, ledger: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("mine")

    found = run("backup", "--ledger", ledger, target)
    assert found.status == 4
    assert "--force" in found.err
    assert target.read_text() == "mine"

    assert run("backup", "--ledger", ledger, "--force", target).status == 0
    assert seconds(target) == 1


def test_a_damaged_ledger_is_only_copied_as_evidence(run: Run, ledger: Path, tmp_path: Path) -> None:
    with ledger.open("r+b") as file:
        file.seek(ledger.stat().st_size - 8192)
        file.write(b"garbage!" * 1024)
    target = tmp_path / "evidence.db"

    refused = run("backup", "--ledger", ledger, target)
    assert refused.status == 4
    assert "is damaged" in refused.err
    assert not target.exists()

    assert run("backup", "--ledger", ledger, "--no-verify", target).status == 0
    assert b"garbage!" in target.read_bytes()


def test_it_can_be_written_to_standard_output(
    run: Run, ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, before = io.BytesIO(), contents(tmp_path)
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=stream, isatty=lambda: False, flush=lambda: None))

    assert run("backup", "--ledger", ledger, "-").status == 0

    assert contents(tmp_path) == before
    (tmp_path / "streamed.db").write_bytes(stream.getvalue())
    assert seconds(tmp_path / "streamed.db") == 1


def test_it_is_not_written_to_a_terminal(run: Run, ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    assert "redirect standard output to a file" in run("backup", "--ledger", ledger, "-").err


def test_without_space_nothing_is_written(ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1 << 20))

    with pytest.raises(LedgerError, match="needs 16 MiB, but only 1 MiB are free"), copied(ledger, tmp_path, print):
        pass

"""`gputally ledger info` tells the truth about a ledger, in use or not, and leaves no trace."""

import fcntl
import json
import os
import shutil
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gputally.ledger.sqlite import schema
from gputally.ledger.sqlite.file import Lock
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.unit.commands.sample import CLUSTER, Runner, abandoned, change, closed, in_use, names
from tests.unit.ledger.next_schema import NEXT, TODAY, begin_next_version, written

ROWS = {
    "open_allocations": 3,
    "ended_allocations": 300,
    "segments": 606,
    "preemptions": 1,
    "usage_rows": 2,
    "daily_rows": 0,
}


def test_it_tells_the_truth_about_a_ledger_in_use(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with in_use(path):
        before = datetime.now(UTC)
        found = json.loads(run("ledger", "info", "--ledger", path, "--output", "json").out)

        assert found["wal_bytes"] == Path(f"{path}-wal").stat().st_size > 0
    assert before <= datetime.fromisoformat(found.pop("at")) <= datetime.now(UTC)
    assert abs(found.pop("free_bytes") - shutil.disk_usage(tmp_path).free) < 1 << 30
    assert (found.pop("size_bytes"), found.pop("wal_bytes")) > (0, 0)
    assert found == {
        "version": 1,
        "ledger": str(path),
        "cluster": CLUSTER,
        "schema": schema.newest_schema(),
        "readable_schema": schema.newest_schema(),
        "is_written": True,
        "accounting_start": "1970-01-01T00:16:40Z",
        "accounted_until": "1970-01-01T01:40:00Z",
        "detail_start": None,
        "rows": ROWS,
        "backups": [],
    }


def test_the_table_shows_the_same(run: Runner, tmp_path: Path) -> None:
    path = closed(tmp_path / "l.db")
    shown = dict(line.split(maxsplit=1) for line in run("ledger", "info", "--ledger", path).out.splitlines())

    assert shown["Cluster"] == CLUSTER
    assert shown["In"] == "use              no"
    assert shown["Accounted"].startswith("until     1970-01-01 01:40:00 UTC, ")
    assert shown["Ended"] == "allocations   300"


@pytest.mark.parametrize("command", [("info",), ("check",), ("query", "SELECT count(*) FROM pods")])
@pytest.mark.parametrize("made", [closed, abandoned])
def test_reading_leaves_no_file_and_changes_none(run: Runner, tmp_path: Path, made: object, command: list[str]) -> None:
    path = made(tmp_path / "l.db")  # type: ignore[operator]  # one of the two functions above
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir() if not each.name.endswith("-shm")}

    assert run("ledger", command[0], "--ledger", path, *command[1:]).status == 0
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir() if not each.name.endswith("-shm")} == before


def test_it_never_prevents_a_writer_from_starting(run: Runner, tmp_path: Path) -> None:
    path = closed(tmp_path / "l.db")
    lock = Lock(path)
    lock.acquire()
    assert json.loads(run("ledger", "info", "--ledger", path, "--output", "json").out)["is_written"] is True
    lock.release()
    assert json.loads(run("ledger", "info", "--ledger", path, "--output", "json").out)["is_written"] is False
    lock.acquire()
    lock.release()


def test_a_writer_waits_for_one_that_only_asks(tmp_path: Path) -> None:
    path = closed(tmp_path / "l.db")
    with Path(f"{path}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # for longer than `is_locked` has it
        timer = threading.Timer(0.05, fcntl.flock, (file, fcntl.LOCK_UN))
        timer.start()
        with SqliteLedger(path):
            pass
        timer.join()


def test_a_ledger_of_another_schema_has_its_schema_and_cluster(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(path := tmp_path / "l.db")
    begin_next_version(monkeypatch)
    found = json.loads(run("ledger", "info", "--ledger", path, "--output", "json").out)

    assert (found["schema"], found["cluster"], found["rows"], found["accounted_until"]) == (TODAY, "uid-1", None, None)
    assert f"; this gputally reads {NEXT}" in run("ledger", "info", "--ledger", path).out


def test_copies_that_an_upgrade_left_are_named(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(path := tmp_path / "l.db")
    begin_next_version(monkeypatch)
    with SqliteLedger(path):
        pass
    found = json.loads(run("ledger", "info", "--ledger", path, "--output", "json").out)

    assert [Path(each["path"]).name for each in found["backups"]] == [f"l.db.before-{NEXT:04}"]
    assert [each["schema"] for each in found["backups"]] == [TODAY]


def test_the_variable_of_the_aggregator_names_the_ledger(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "GPUTALLY_LEDGER", f"sqlite:///{closed(tmp_path / 'l.db')}")

    assert json.loads(run("ledger", "info", "--output", "json").out)["rows"] == ROWS


def test_what_the_ledger_contains_cannot_control_the_terminal(run: Runner, tmp_path: Path) -> None:
    path = closed(tmp_path / "l.db")
    change(path, "UPDATE meta SET value = char(27) || '[2J' WHERE key = 'cluster'")

    assert "\x1b" not in run("ledger", "info", "--ledger", path).out


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no such file; specify the ledger with --ledger or GPUTALLY_LEDGER"), (b"text", "not an SQLite file")],
)
def test_what_is_no_ledger_is_an_error_and_stays(
    run: Runner, tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "l.db"
    if content:
        path.write_bytes(content)
    before = names(tmp_path)

    status, out, err = run("ledger", "info", "--ledger", path)

    assert (status, out, names(tmp_path)) == (4, "", before)
    assert message in err


def test_a_url_names_the_ledger_as_a_path_does(run: Runner, tmp_path: Path) -> None:
    path = closed(tmp_path / "l.db")
    query = ("ledger", "query", "--output", "csv", "--ledger", f"sqlite:///{path}", "SELECT count(*) AS n FROM pods")

    assert run(*query).out.split() == ["n", "303"]
    assert run("ledger", "info", "--ledger", f"sqlite:///{path}").out.startswith(f"Ledger              {path}")
    assert "not a supported type of ledger" in run("ledger", "check", "--ledger", "postgresql://host/db").err

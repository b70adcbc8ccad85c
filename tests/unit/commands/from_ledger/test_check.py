"""`gputally ledger check` finds damage in pages, indexes and rows."""

import json
from pathlib import Path

import pytest

from tests.unit.commands.sample import Runner, change, closed, damage, in_use


def test_a_ledger_in_use_has_no_damage(run: Runner, tmp_path: Path) -> None:
    with in_use(tmp_path / "l.db"):
        status, out, err = run("ledger", "check", "--ledger", tmp_path / "l.db")

    assert (status, err) == (0, "")
    assert out.startswith(f"{tmp_path}/l.db: no damage found, ")


def test_a_damaged_page_is_found_and_the_message_names_the_remedy(run: Runner, tmp_path: Path) -> None:
    damage(closed(tmp_path / "l.db"))

    status, out, err = run("ledger", "check", "--ledger", tmp_path / "l.db")

    assert (status, out) == (4, "")
    assert err.startswith(f"gputally: {tmp_path}/l.db: is damaged: ")
    assert err.endswith("restore a backup with 'gputally restore': docs/runbooks/GputallyLedgerDamaged.md\n")


def test_an_index_that_contradicts_its_table_is_found(run: Runner, tmp_path: Path) -> None:
    path = closed(tmp_path / "l.db")
    path.write_bytes(path.read_bytes().replace(b"ended-77", b"ended-7X", 1))

    status, _, err = run("ledger", "check", "--ledger", path)

    assert status == 4
    assert "row 78 missing from index sqlite_autoindex_pods_1" in err


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("DELETE FROM pod_segments WHERE pod = 7", "the last revision of pod ended-6 lacks segments"),
        ("DELETE FROM pod_days WHERE pod = 7", "pod ended-6 lacks one of its days"),
        ("UPDATE meta SET value = '1' WHERE key = 'balance_allocated_b'", "differ from the balance by"),
    ],
)
def test_rows_that_contradict_each_other_are_found(run: Runner, tmp_path: Path, sql: str, found: str) -> None:
    change(closed(tmp_path / "l.db"), sql)

    status, out, err = run("ledger", "check", "--ledger", tmp_path / "l.db", "--output", "json")

    assert (status, json.loads(out)["damaged"]) == (4, True)
    assert found in json.loads(out)["damage"]
    assert found in err


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("DROP TABLE waits", "the table waits is missing"),
        ("DROP TABLE pods", "the table pods is missing"),
        ("DROP TABLE meta", "the table meta is missing"),
        ("DROP VIEW allocations", "the view allocations is missing"),
        ("ALTER TABLE waits RENAME COLUMN quantity TO amount", "the column quantity of the table waits is missing"),
        ("PRAGMA user_version = 0", "it has no schema"),
    ],
)
def test_what_the_schema_has_and_the_ledger_lacks_is_named(run: Runner, tmp_path: Path, sql: str, found: str) -> None:
    change(closed(tmp_path / "l.db"), sql)

    status, _, err = run("ledger", "check", "--ledger", tmp_path / "l.db")

    assert status == 4
    assert f"{tmp_path}/l.db: is damaged: {found}" in err


def test_a_file_that_was_cut_off_is_found(run: Runner, tmp_path: Path) -> None:
    path = closed(tmp_path / "l.db")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])

    assert run("ledger", "check", "--ledger", path).status == 4

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.maintenance.conftest import PODS, Ran, contents

Run = Callable[..., Ran]
QUERY = "SELECT tenant, count(*) AS pods, NULL AS unknown, x'00ff' AS bytes FROM allocation_segments GROUP BY 1"


def test_rows_are_a_table_by_default(run: Run, ledger: Path) -> None:
    assert run("ledger", "query", "--ledger", ledger, QUERY).out == (
        "tenant  pods  unknown  bytes\n------  ----  -------  -------\nred     20    NULL     X'00ff'\n"
    )


def test_csv_and_json_have_the_same_values(run: Run, ledger: Path) -> None:
    as_csv = run("ledger", "query", "--ledger", ledger, "--output", "csv", QUERY).out
    as_json = run("ledger", "query", "--ledger", ledger, "--output", "json", QUERY).out

    assert list(csv.DictReader(io.StringIO(as_csv))) == [
        {"tenant": "red", "pods": "20", "unknown": "", "bytes": "00ff"}
    ]
    assert json.loads(as_json) == [{"tenant": "red", "pods": 20, "unknown": None, "bytes": "00ff"}]


@pytest.mark.parametrize("output", ["csv", "json"])
def test_no_rows_are_an_empty_document(run: Run, ledger: Path, output: str) -> None:
    shown = run("ledger", "query", "--ledger", ledger, "--output", output, "SELECT 1 AS one WHERE FALSE").out

    assert shown == ("one\n" if output == "csv" else "[]\n")


def test_sql_may_come_from_standard_input(run: Run, ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT count(*) AS pods FROM allocations"))

    assert run("ledger", "query", "--ledger", ledger, "--output", "csv", "-").out == f"pods\n{PODS}\n"


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM pods",
        "CREATE TABLE mine (a)",
        "ATTACH 'other.db' AS other",
        "PRAGMA user_version = 99",
        "PRAGMA journal_mode = DELETE",
        "VACUUM INTO 'copy.db'",
    ],
)
def test_nothing_can_be_changed(
    run: Run, ledger: Path, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = contents(tmp_path)

    found = run("ledger", "query", "--ledger", ledger, sql)

    assert found.status == 4
    assert found.out == ""
    assert contents(tmp_path) == before


def test_a_query_that_takes_too_long_is_ended(run: Run, ledger: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

    found = run("ledger", "query", "--ledger", ledger, "--timeout", "0.05", endless)

    assert found.status == 4
    assert "took longer than 0.05 s" in found.err


@pytest.mark.parametrize("sql", ["SELEC", "SELECT nope FROM pods", "SELECT 1; SELECT 2", ""])
def test_an_invalid_query_is_a_message_and_no_traceback(run: Run, ledger: Path, sql: str) -> None:
    found = run("ledger", "query", "--ledger", ledger, sql)

    assert found.status == 4
    assert found.err.startswith("gputally: ")


def test_two_columns_of_one_name_do_not_lose_a_value_silently(run: Run, ledger: Path) -> None:
    found = run("ledger", "query", "--ledger", ledger, "--output", "json", "SELECT 1 AS a, 2 AS a")

    assert found.status == 4
    assert "rename one with AS" in found.err

"""`gputally ledger query` prints what SQL selects, and can change nothing."""

import csv
import io
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.formatting.tables import write_rows
from tests.unit.commands.sample import Runner, closed, dump, in_use, names

WRITES = [
    "DELETE FROM pods",
    "INSERT INTO meta VALUES ('a', 'b')",
    "UPDATE meta SET value = '' RETURNING key",
    "DROP VIEW segments",
    "CREATE TABLE x (y)",
    "CREATE TEMP TABLE x (y)",
    "ATTACH '{folder}/other.db' AS other",
    "VACUUM",
    "VACUUM INTO '{folder}/other.db'",
    "PRAGMA user_version = 99",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA query_only = OFF",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "BEGIN IMMEDIATE",
    "REINDEX",
    "ANALYZE",
]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return closed(tmp_path_factory.mktemp("ledger") / "l.db")


@pytest.mark.parametrize("sql", WRITES)
def test_it_can_change_nothing(run: Runner, tmp_path: Path, sql: str) -> None:
    path = tmp_path / "l.db"
    with in_use(path):
        before, files = dump(path), names(tmp_path)

        status, out, err = run("ledger", "query", "--ledger", path, sql.format(folder=tmp_path))

        assert (status, out) == (4, "")
        assert err.startswith("gputally: SQL: ")
        assert err.endswith("; only statements that read the ledger are allowed\n")
        assert (dump(path), names(tmp_path)) == (before, files)


def test_a_writer_continues_beside_it(run: Runner, tmp_path: Path) -> None:
    with in_use(tmp_path / "l.db"):
        assert (
            run("ledger", "query", "--ledger", tmp_path / "l.db", "SELECT count(*) FROM pods").out
            == "count(*)\n     303\n"
        )


SQL = """
SELECT uid, priority, end_us, 1.5 AS x FROM pods p JOIN pod_revisions r ON r.pod = p.id
WHERE uid >= 'open' OR p.id = 1 ORDER BY uid
"""


def test_tables_align_numbers_to_the_right(run: Runner, ledger: Path) -> None:
    assert run("ledger", "query", "--ledger", ledger, SQL).out.splitlines() == [
        "uid      priority  end_us    x",
        "ended-0        -5       6  1.5",
        "open-0         -5          1.5",
        "open-1         -5          1.5",
        "open-2         -5          1.5",
    ]


def test_csv_leaves_null_empty(run: Runner, ledger: Path) -> None:
    out = run("ledger", "query", "--ledger", ledger, "--output", "csv", SQL).out

    assert out.splitlines()[:3] == ["uid,priority,end_us,x", "ended-0,-5,6,1.5", "open-0,-5,,1.5"]


def test_json_has_an_object_per_line(run: Runner, ledger: Path) -> None:
    out = run("ledger", "query", "--ledger", ledger, "--output", "json", SQL).out

    assert [json.loads(line) for line in out.splitlines()][1] == {
        "uid": "open-0",
        "priority": -5,
        "end_us": None,
        "x": 1.5,
    }


def test_json_rejects_columns_of_the_same_name(run: Runner, ledger: Path) -> None:
    status, out, err = run("ledger", "query", "--ledger", ledger, "--output", "json", "SELECT id, id FROM pods")

    assert (status, out, err) == (4, "", "gputally: SQL: several columns are named id; rename them with AS\n")


def test_the_statement_can_come_from_standard_input(run: Runner, ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 7 AS seven;\n"))

    assert run("ledger", "query", "--ledger", ledger, "-").out == "seven\n    7\n"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM alocations", "no such table: alocations; did you mean allocations?"),
        ("SELECT * FROM xyz", "no such table: xyz; use one of allocation_segments, allocations, capacity, "),
        ("SELECT nope FROM pods", "list the columns of a table with: PRAGMA table_info(allocation_segments)"),
        ("SELECT 1; SELECT 2", "run one statement at a time"),
        ("SELECT ?", "run one statement at a time, with its values in it"),
        ("SELECT a.b c.d FROM pods", 'SQL: near ".": syntax error'),
        ("SELECT load_extension('x')", "load_extension; only statements that read the ledger are allowed"),
        ("SELEC", 'near "SELEC": syntax error'),
        ("", "returns no rows; use a SELECT"),
    ],
)
def test_a_wrong_statement_is_an_error_that_names_the_fix(run: Runner, ledger: Path, sql: str, message: str) -> None:
    status, out, err = run("ledger", "query", "--ledger", ledger, sql)

    assert (status, out) == (4, "")
    assert message in err


def test_the_query_that_lists_columns_works(run: Runner, ledger: Path) -> None:
    out = run("ledger", "query", "--ledger", ledger, "--output", "csv", "PRAGMA table_info(allocation_segments)").out

    assert "14,until_us,,0,,0" in out.splitlines()


def test_an_endless_query_is_stopped(run: Runner, ledger: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"

    status, _, err = run("ledger", "query", "--ledger", ledger, "--timeout", "0.2", endless)

    assert status == 4
    assert "stopped after 0.2 s; " in err


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "soon"])
def test_a_timeout_is_a_number_above_zero(run: Runner, ledger: Path, value: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("ledger", "query", "--ledger", ledger, f"--timeout={value}", "SELECT 1")


@pytest.mark.parametrize("output", ["csv", "json", "table"])
def test_rows_are_printed_as_they_are_read(output: str) -> None:
    printed = io.StringIO()

    def rows() -> Iterator[tuple[int]]:
        for number in range(3000):
            yield (number,)
            if number > 1000:
                assert len(printed.getvalue().splitlines()) > number - 1000

    write_rows(printed, ["n"], rows(), output=output)

    assert len(printed.getvalue().splitlines()) == 3000 + (output != "json")


values = st.none() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.tuples(values, values)))
def test_json_and_csv_contain_every_value(rows: list[tuple[object, object]]) -> None:
    as_json, as_csv = io.StringIO(), io.StringIO(newline="")

    write_rows(as_json, ["a", "b"], rows, output="json")
    write_rows(as_csv, ["a", "b"], rows, output="csv")

    assert [tuple(json.loads(line).values()) for line in as_json.getvalue().split("\n")[:-1]] == rows
    as_csv.seek(0)
    read = [[cell.removeprefix("'") for cell in row] for row in csv.reader(as_csv)][1:]
    assert read == [["" if each is None else str(each) for each in row] for row in rows]


@given(st.lists(st.tuples(values | st.binary(), values)))
def test_a_table_has_a_line_per_row_whatever_it_contains(rows: list[tuple[object, object]]) -> None:
    printed = io.StringIO()

    write_rows(printed, ["a", "b"], rows, output="table")

    assert printed.getvalue().count("\n") == len(rows) + 1
    assert all(each.isprintable() for each in printed.getvalue().splitlines())


def test_rows_read_directly_are_the_same(run: Runner, ledger: Path, tmp_path: Path) -> None:
    sql = "SELECT * FROM allocation_segments ORDER BY pod_uid, ordinal"
    out = run("ledger", "query", "--ledger", ledger, "--output", "json", sql).out
    copy = tmp_path / "copy.db"
    copy.write_bytes(ledger.read_bytes())
    with closing(sqlite3.connect(copy)) as connection:
        expected = connection.execute(sql).fetchall()

    assert [tuple(json.loads(line).values()) for line in out.splitlines()] == expected
    assert len(expected) == 606

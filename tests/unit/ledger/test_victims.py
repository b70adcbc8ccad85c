"""Victims of a window, or of a preemption of a job, are found by an index, however many others the ledger has."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

from gputally.ledger.sqlite import schema
from gputally.ledger.sqlite.rows import Row, Rows
from gputally.ledger.sqlite.victims import TOGETHER, read_disruptions, read_lost_work, read_preemptions, read_together
from gputally.model.disruptions import CAUSES

WINDOW = {"start": 0, "end": 1}
CAUSED = {**WINDOW, "causes": "[]"}
IDS = {"ids": "[]"}


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
        schema.create(new)
        yield new


@pytest.mark.parametrize(
    ("read", "index"),
    [
        (
            lambda rows: read_disruptions(rows, WINDOW, CAUSES, ("", "")),
            "victims_decided (decided_us>? AND decided_us<?)",
        ),
        (lambda rows: read_preemptions(rows, WINDOW), "victims_decided (decided_us>? AND decided_us<?)"),
        (lambda rows: read_together(rows, IDS), "victims_job_preemption (job_preemption=?)"),
        (lambda rows: read_lost_work(rows, CAUSED), "victims_decided (decided_us>? AND decided_us<?)"),
        (lambda rows: read_lost_work(rows, IDS, victims=TOGETHER), "victims_job_preemption (job_preemption=?)"),
    ],
)
def test_no_query_reads_all_victims(connection: sqlite3.Connection, read: Callable[[Rows], object], index: str) -> None:
    asked: list[tuple[str, Mapping[str, Any]]] = []

    def rows(statement: str, values: Mapping[str, Any]) -> list[Row]:
        asked.append((statement, values))
        return []

    read(rows)

    assert asked
    for statement, values in asked:
        plan = [detail for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        assert f"SEARCH victims USING INDEX {index}" in plan


def test_queries_of_users_by_time_use_the_index(connection: sqlite3.Connection) -> None:
    for view in ("preemptions", "disruptions"):
        plan = connection.execute(f"EXPLAIN QUERY PLAN SELECT * FROM {view} WHERE decided_us > 7").fetchall()
        assert [detail for *_, detail in plan] == ["SEARCH victims USING INDEX victims_decided (decided_us>?)"]

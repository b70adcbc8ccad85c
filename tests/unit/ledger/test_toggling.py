"""What changes often costs the same each time: rows grow with the changes, whatever length the history has."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gputally.accounting.fleet.fleet import Fleet
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.core.manifests import NodeForm, us
from tests.core.one_pod import A100, BY_LABEL, NODE, RUNNING
from tests.core.replay import Replay

TABLES = ("pods", "pod_revisions", "pod_segments", "terms", "texts", "histories", "working", "capacity", "prices")
ROUNDS = (100, 200, 400)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger(tmp_path / "ledger.db") as ledger:
        yield ledger


@pytest.fixture
def replay() -> Replay:
    replay = Replay(rules=BY_LABEL)
    replay.see(NODE, at=1)
    replay.see(RUNNING, at=13)
    return replay


def rows(ledger: SqliteLedger) -> int:
    with closing(sqlite3.connect(ledger.path)) as connection:
        return sum(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES)


def write(replay: Replay, ledger: SqliteLedger) -> int:
    """How many bytes of documents this writes."""
    changes = replay.fleet.drain()
    assert not any(map(any, ledger.write(changes).values()))
    with closing(sqlite3.connect(ledger.path)) as connection:
        longest: int = connection.execute("SELECT max(length(document)) FROM working").fetchone()[0]
    return longest


def pod_with(count: int) -> str:
    return "red" if count % 2 else "blue"


def test_a_label_that_is_toggled_adds_as_many_rows_each_time(replay: Replay, ledger: SqliteLedger) -> None:
    grown, documents, count = [], [], 0
    for rounds in ROUNDS:
        while count < rounds:
            replay.see(replace(RUNNING, labels={"team": pod_with(count)}, version=10 + count), at=20 + count)
            documents.append(write(replay, ledger))
            count += 1
        grown.append(rows(ledger))

    assert (
        (grown[2] - grown[1]) == 2 * (grown[1] - grown[0]) == 200 * 4
    )  # revision, end of one segment, next one, terms
    assert documents[-1] == documents[21]
    assert kept_alike(replay, ledger)


def test_a_node_that_is_relabelled_adds_as_many_rows_each_time(replay: Replay, ledger: SqliteLedger) -> None:
    grown, documents, count = [], [], 0
    for rounds in ROUNDS:
        while count < rounds:
            labels = {**A100, "node.kubernetes.io/instance-type": pod_with(count)}
            replay.see(NodeForm(labels=labels), at=20 + count)
            documents.append(write(replay, ledger))
            count += 1
        grown.append(rows(ledger))

    assert (grown[2] - grown[1]) == 2 * (grown[1] - grown[0]) == 200 * 2  # capacity and terms
    assert documents[-1] == documents[20]
    assert kept_alike(replay, ledger)


def kept_alike(replay: Replay, ledger: SqliteLedger) -> bool:
    """Whether the next process has of the pod what this one has."""
    [saved] = ledger.saved(now_us=us(0)).pods
    [record] = replay.fleet.pods.records.values()
    return saved == record and not Fleet(rules=BY_LABEL, book=None, saved=ledger.saved(now_us=0)).drain().revisions

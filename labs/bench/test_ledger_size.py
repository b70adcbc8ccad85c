"""The ledger size of a pod that is bound, runs, is deleted and ends on a live watch."""

import sqlite3
from contextlib import closing
from pathlib import Path

from labs.bench.ledger import lives

PODS = 600
TABLES = ("pods", "pod_revisions", "pod_segments", "pod_days", "texts", "terms", "histories")


def test_a_pod_takes_less_than_a_kilobyte_with_all_revisions_and_indexes(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    for _ in lives(path, PODS):
        pass

    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(f"SELECT name FROM sqlite_master WHERE tbl_name IN ({quoted()})").fetchall()
        names = [name for (name,) in found]
        pages = connection.execute(f"SELECT sum(pgsize) FROM dbstat WHERE name IN ({', '.join(map(repr, names))})")
        [size] = pages.fetchone()
        assert connection.execute("SELECT count(*) FROM pods").fetchone() == (PODS,)
        assert connection.execute("SELECT count(*) FROM pod_revisions").fetchone() == (4 * PODS,)
        assert connection.execute("SELECT count(*) FROM pod_segments").fetchone() == (6 * PODS,)
    assert size / PODS < 1000


def quoted() -> str:
    return ", ".join(map(repr, TABLES))

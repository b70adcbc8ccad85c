"""A ledger of each schema, as its program left it: this version upgrades it, reads the same in it, and goes on."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from gputally.ledger.open import open_reader
from gputally.ledger.sqlite import schema
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.conftest import Golden
from tests.contract.records import ALWAYS, in_order, pod, segment, step
from tests.contract.test_record_starts import LISTS
from tests.unit.ledger.next_schema import TODAY
from tests.unit.ledger.recorded_ledger import DAY, FOLDER, LIVE, restored

RECORDED = sorted(FOLDER.glob("*.sql"))


@pytest.fixture(params=RECORDED, ids=lambda recording: recording.stem)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The ledger file of a recording."""
    path = tmp_path / f"{request.param.stem}.db"
    restored(request.param, path)
    return path


def contents(path: Path) -> str:
    """All lists and sums of the ledger, as JSON."""
    with open_reader(str(path)) as reader:
        found: dict[str, object] = {name: list(read(reader, ALWAYS)) for name, (_, read) in LISTS.items()}
        times, jobs = reader.allocated_with_jobs(ALWAYS, ("tenant", "namespace", "job"), jobs_by=("tenant",))
        found |= {
            "state": reader.state(),
            "allocated": in_order(times),
            "jobs": jobs,
            "measured": reader.measured(ALWAYS, ("tenant",)),
            "lost": reader.lost(ALWAYS, ("tenant",)),
            "capacity": list(reader.capacity(ALWAYS)),
            "steps": list(reader.allocated_steps(ALWAYS)),
            "ended in gaps": list(reader.ended_in_gaps(ALWAYS)),
            "progress": reader.progress(ALWAYS),
            "priority classes": reader.priority_classes(ALWAYS),
            "closed periods": reader.closed_periods(),
        }
    return msgspec.json.format(msgspec.json.encode(found, enc_hook=str), indent=1).decode() + "\n"


def test_its_contents_are_as_recorded(path: Path, golden: Golden) -> None:
    with SqliteLedger(path) as ledger:
        for _ in ledger.check():
            pass

    golden.check(f"ledger/{path.stem}.json", contents(path))


def test_its_pods_go_on(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        saved = ledger.saved(now_us=0)
        assert ([each.uid for each in saved.pods], [each.uid for each in saved.departed]) == (["live"], ["a"])
        [live] = saved.pods
        assert (len(live.segments), len(live.terms)) == (len(LIVE.segments), len(LIVE.terms))
        ended = pod("live", segment(1100, 1110), segment(1110, 3 * DAY), revision=9)
        ledger.write(step(ended, at=3 * DAY, live=None, pods={"live": ended}))
        assert ledger.saved(now_us=0).pods == (ended,)


def test_there_is_one_of_each_schema() -> None:
    assert [int(each.stem) for each in RECORDED] == [*range(1, TODAY + 1)]


def test_upgraded_it_has_the_tables_of_a_new_one(path: Path) -> None:
    """A change of the declared tables needs a migration: ledgers of users do not get it otherwise."""
    with SqliteLedger(path):
        pass
    with closing(sqlite3.connect(path)) as upgraded, closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
        schema.create(new)
        assert structure(upgraded) == structure(new)


def structure(connection: sqlite3.Connection) -> dict[str, object]:
    """Tables with their columns in any order, keys and indexes; the SQL of views and of indexes."""
    named = connection.execute("SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    found: dict[str, object] = {name: " ".join(sql.split()) for name, type_, sql in named if type_ != "table"}
    for name in (name for name, type_, _ in named if type_ == "table"):
        [(*_, without_rowid, is_strict)] = connection.execute(f"PRAGMA table_list({name})")
        indexes = connection.execute(f"SELECT name, \"unique\", origin, partial FROM pragma_index_list('{name}')")
        found[name] = (
            set(connection.execute(f"SELECT name, type, \"notnull\", pk FROM pragma_table_info('{name}')")),
            {
                index: connection.execute(f"SELECT seqno, name FROM pragma_index_info('{index[0]}')").fetchall()
                for index in indexes.fetchall()
            },
            (without_rowid, is_strict),
        )
    return found

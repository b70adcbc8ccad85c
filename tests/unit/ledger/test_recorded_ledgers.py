"""A ledger of each schema, as its program left it: this version upgrades it, reads the same in it, and goes on."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from gputally.ledger.open import open_reader
from gputally.ledger.sqlite import schema
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.conftest import Golden
from tests.contract.records import ALWAYS, pod, segment, step
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
            "allocated": times,
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


def test_the_first_step_makes_the_schema_of_the_first_recording(tmp_path: Path) -> None:
    """A later change is a step of its own: ledgers of users do not get it otherwise."""
    restored(RECORDED[0], tmp_path / "ledger.db")
    with (
        closing(sqlite3.connect(tmp_path / "ledger.db")) as recorded,
        closing(sqlite3.connect(":memory:", isolation_level=None)) as new,
    ):
        schema.migrate(new, schema.migrations()[:1])
        assert definitions(recorded) == definitions(new)


def definitions(connection: sqlite3.Connection) -> list[str]:
    """All of its schema, without the quotes of a dump."""
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name")
    return [re.sub(r'"(\w+)"', r"\1", sql) for (sql,) in rows]

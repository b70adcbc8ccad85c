"""An older ledger is brought to the present schema after a copy of it was made; a newer one is refused."""

import logging
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from msgspec import structs

from gputally import cli
from gputally.accounting.changes import Known
from gputally.errors import LedgerError
from gputally.ledger.open import open_reader
from gputally.ledger.sqlite import file, integrity, schema
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.pod_record import PodRecord
from gputally.model.units import GPU_SECOND
from tests.contract.records import ALWAYS, BALANCED, PRICE, TERMS, line, pod, segment, step, us
from tests.core.ledgers import segments_in
from tests.unit.ledger.older_ledger import NEWEST, PODS, held, written_by

OLDER = [number for number, _ in schema.migrations() if number < NEWEST]


class Usage(NamedTuple):
    """As shutil tells it."""

    total: int
    used: int
    free: int


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gputally.db"


@pytest.mark.parametrize("version", OLDER)
def test_rows_survive_the_upgrade_and_the_backup_has_them_as_they_were(version: int, path: Path) -> None:
    before = written_by(version, path)

    with SqliteLedger(path):
        assert [each.pod_uid for each in segments_in(path)] == sorted(PODS)
        with open_reader(str(path)) as reader:
            times, [jobs] = reader.allocated_with_jobs(ALWAYS, ("tier", "name"), jobs_by=("tier",))
        found = {each.labels: each.gpu_time for each in times}
        assert found == {("a tier of its own", f"pod-{uid}"): 1000 * GPU_SECOND for uid in PODS}
        assert len(jobs.jobs) == 1

    backup = Path(f"{path}.before-{NEWEST:04}")
    assert held(backup) == (version, before)
    meta = [("accounting_start_us" if key == "opened_us" else key, value) for key, value in before["meta"]]
    assert held(path, backup) == (NEWEST, before | {"meta": sorted(meta, key=repr)})
    assert before["allocations" if version < 4 else "pod_revisions"]


def working_by(version: int, path: Path, *records: PodRecord) -> None:
    """A ledger as a program of schema 3 left it, with its pods in the working state and segments by resource."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        schema.migrate(connection, schema.migrations()[:version])
        connection.execute("INSERT INTO meta VALUES ('opened_us', '1000000000'), ('at_us', '2000000000')")
        for each in records:
            ordered = sorted(each.segments, key=lambda s: s.resource)
            columns: tuple[object, ...] = (
                each.uid,
                each.revision,
                7,
                each.namespace,
                each.name,
                each.node,
                each.node_uid,
            )
            columns += (each.class_name, each.priority, each.job_kind, each.job, each.created_us, each.scheduled_us)
            columns += (each.started_us, each.deletion_us, each.end_us, each.end_by, 6, 9)
            connection.execute(f"INSERT INTO allocations VALUES ({', '.join('?' * 19)})", columns)
            for ordinal, s in enumerate(ordered):
                key = (each.uid, each.revision, ordinal, s.resource, s.start_us, s.end_us, s.state, s.quantity, s.tier)
                labels = (s.tenant, s.queue, s.gpu_model, s.pool, s.price.key if s.price else None, *s.labels[:3])
                connection.execute(f"INSERT INTO segments VALUES ({', '.join('?' * 17)})", key + labels)
                rated = (PRICE.key, PRICE.currency, str(PRICE.per_gpu_hour), PRICE.basis, PRICE.purchase)
                connection.execute("INSERT OR IGNORE INTO prices VALUES (?, ?, ?, ?, ?)", rated)
            document = msgspec.json.encode(structs.replace(each, segments=()), enc_hook=tuple)
            connection.execute("INSERT INTO working VALUES ('pod', ?, ?)", (each.uid, document))
        a, b = line(*records)
        connection.execute("INSERT INTO meta VALUES ('balance_a', ?), ('balance_b', ?)", (str(a), str(b)))


def test_pods_of_an_older_ledger_go_on_as_they_were(path: Path) -> None:
    two = {"resource": "nvidia.com/mig-1g.10gb", "price": None}
    parts = segment(1000, 1010), segment(1000, 1010, **two), segment(1010, None), segment(1010, None, **two)
    terms = tuple(structs.replace(TERMS, from_us=i, tenant=f"tenant-{i}") for i in range(30))
    live, over = pod("live", *parts, terms=terms, revision=4), pod("over", segment(1000, 1500))
    working_by(3, path, live, over)

    with SqliteLedger(path) as ledger:
        found = [(e.pod_uid, e.revision, e.segment) for e in segments_in(path)]
        assert sorted(found, key=repr) == sorted(
            [("live", 4, structs.replace(each, end_us=each.end_us or us(2000))) for each in parts]
            + [("over", 1, over.segments[0])],
            key=repr,
        )
        assert {each.uid: each for each in ledger.saved(now_us=0).pods} == {"live": live, "over": over}
        ended = structs.replace(live, revision=5, segments=(*parts[:2], segment(1010, 1700)))
        known = {"live": Known(segments=2, terms=30)}
        assert ledger.write(step(ended, pods={"live": ended}, known=known, live=line(ended, over))) == BALANCED
        assert {each.uid: each for each in ledger.saved(now_us=0).pods} == {"live": ended, "over": over}


def test_what_was_over_before_an_upgrade_may_be_revised_after_it(path: Path) -> None:
    over = pod("over", segment(1000, 1500))
    working_by(3, path, over)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM working")

    with SqliteLedger(path) as ledger:
        assert ledger.write(step(over)) == BALANCED
        assert [(e.revision, e.segment) for e in segments_in(path)] == [(1, over.segments[0])]
        again = pod("over", segment(1000, 1400), revision=2)
        assert ledger.write(step(again)) == BALANCED
        assert [(e.revision, e.segment) for e in segments_in(path)] == [(2, again.segments[0])]


def test_a_job_of_before_and_after_the_upgrade_is_one_job(path: Path) -> None:
    working_by(3, path, pod("over", segment(1000, 1500)), pod("gone", segment(1000, 1500), job="only before"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM working")

    with SqliteLedger(path) as ledger:
        ledger.write(step(pod("new", segment(1600, 1700)), pod("other", segment(1600, 1700), job="only after")))
    with open_reader(str(path)) as reader:
        [jobs] = reader.allocated_with_jobs(ALWAYS, ("tier",), jobs_by=("tier",))[1]
    assert len(jobs.jobs) == 3


def test_a_ledger_of_this_schema_and_a_new_one_are_not_copied(path: Path) -> None:
    for _ in range(2):
        with SqliteLedger(path):
            pass

    assert sorted(each.name for each in path.parent.iterdir()) == [path.name, f"{path.name}.lock"]


def test_the_log_names_the_backup_and_how_to_go_back(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    written_by(1, path)

    with SqliteLedger(path):
        pass

    [entry] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert (
        f"{path}.before-{NEWEST:04} is its backup: to roll back, stop the aggregator, restore it with 'gputally "
        in entry
    )


def test_the_way_back_works(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = written_by(NEWEST - 1, path)
    with SqliteLedger(path) as ledger:
        ledger.write(step(pod("later", segment(3000, None))))
    older = schema.migrations()[:-1]
    monkeypatch.setattr(schema, "migrations", lambda: older)
    monkeypatch.setattr(integrity, "check_chain", lambda _: iter(()))  # older versions know no closed periods

    with pytest.raises(LedgerError) as told, SqliteLedger(path):
        pass
    named = re.search(r"or run 'gputally (.+)', which lacks everything accounted since the upgrade$", str(told.value))
    assert named
    assert cli.main(named[1].split()) == 0

    with closing(file.connect(path)):
        pass
    assert held(path) == (NEWEST - 1, before)


def test_a_newer_ledger_is_refused_and_a_backup_that_is_too_new_as_well_is_not_proposed(path: Path) -> None:
    with SqliteLedger(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {NEWEST + 2}")
    shutil.copy(path, f"{path}.before-{NEWEST + 3:04}")
    content = path.read_bytes()

    with pytest.raises(LedgerError, match=r"run the newer gputally again \(there is no backup gputally\.db\.before-"):
        SqliteLedger(path)

    assert path.read_bytes() == content


def test_without_room_for_the_backup_nothing_is_upgraded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written_by(1, path)
    before = path.read_bytes()
    monkeypatch.setattr(
        "gputally.ledger.sqlite.copies.shutil.disk_usage",
        lambda _: Usage(10**9, 10**9 - (5 << 20), 5 << 20),
    )

    with pytest.raises(LedgerError, match=r"needs 16 MiB beside it, but 5 MiB are free; free some space"):
        SqliteLedger(path)

    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.before-*"))


def test_a_backup_that_cannot_be_written_stops_the_upgrade(path: Path) -> None:
    before = written_by(1, path)
    Path(f"{path}.before-{NEWEST:04}").mkdir()

    with pytest.raises(LedgerError, match=r"cannot be upgraded because the backup .* cannot be written"):
        SqliteLedger(path)

    assert held(path) == (1, before)
    assert not list(path.parent.glob("*.partial"))


def test_the_backup_is_as_private_as_the_ledger(path: Path) -> None:
    written_by(1, path)
    path.chmod(0o640)

    with SqliteLedger(path):
        pass

    assert Path(f"{path}.before-{NEWEST:04}").stat().st_mode & 0o777 == 0o640


def test_an_upgrade_that_is_tried_again_replaces_the_backup_of_the_first_try(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = written_by(1, path)
    steps = schema.migrations()
    with monkeypatch.context() as patch:
        patch.setattr(schema, "migrations", lambda: [*steps[:-1], (NEWEST, "SELECT missing;")])
        with pytest.raises(LedgerError, match="no such column"):
            SqliteLedger(path)

    with SqliteLedger(path):
        pass

    assert held(Path(f"{path}.before-{NEWEST:04}")) == (1, before)


def test_what_a_copy_left_behind_is_no_way_back(path: Path) -> None:
    with SqliteLedger(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {NEWEST + 1}")
    for ending in (".partial", ".partial-journal", "-wal"):
        Path(f"{path}.before-{NEWEST:04}{ending}").write_bytes(bytes(100))

    with pytest.raises(LedgerError, match=r"no backup gputally\.db\.before-"):
        SqliteLedger(path)


def test_the_leftovers_of_a_killed_upgrade_do_not_stand_in_the_way(path: Path) -> None:
    before = written_by(1, path)
    for ending in ("", ".partial"):
        Path(f"{path}.before-{NEWEST:04}{ending}").write_bytes(bytes(100))

    with SqliteLedger(path):
        pass

    assert held(Path(f"{path}.before-{NEWEST:04}")) == (1, before)

"""The index by day finds every pod of a window, whatever became of it, and little else."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from gputally.errors import LedgerDamaged
from gputally.ledger.open import open_reader
from gputally.ledger.records import Window
from gputally.ledger.sqlite import pod_days
from gputally.ledger.sqlite.integrity import steps
from gputally.ledger.sqlite.reader import SqliteRows
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.pod_record import PodRecord
from gputally.model.units import GPU_SECOND, US_PER_DAY
from tests.contract.records import line, pod, segment, step

DAY = 86_400
NOON = DAY // 2


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def spanning(start: int, end: int | None, *, revision: int = 1) -> PodRecord:
    ends = {} if end else {"end_us": None, "end_by": None}
    return pod("a", segment(start, end), revision=revision, gap=None, **ends)


def write(path: Path, *records: PodRecord, at: int) -> None:
    """Each in a step of its own."""
    with SqliteLedger(path) as ledger:
        for each in records:
            ledger.write(step(each, at=at, live=None))


def days(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        return [day for (day,) in connection.execute("SELECT day FROM pod_days ORDER BY day")]


def seconds(path: Path, first_day: int, last_day: int) -> int:
    """The GPU-seconds in these days, the last one excluded."""
    window = Window(first_day * US_PER_DAY, last_day * US_PER_DAY)
    with open_reader(str(path)) as reader:
        return sum(each.gpu_time for each in reader.allocated(window, ("tenant",))) // GPU_SECOND


def test_an_ended_pod_has_its_days_and_no_midnight_at_which_it_ended(path: Path) -> None:
    write(path, spanning(NOON, None), spanning(NOON, 3 * DAY, revision=2), at=9 * DAY)

    assert days(path) == [0, 1, 2]
    assert [seconds(path, day, day + 1) for day in range(4)] == [NOON, DAY, DAY, 0]


def test_a_pod_that_lasts_is_in_every_window_up_to_now(path: Path) -> None:
    write(path, spanning(NOON, None), at=5 * DAY)

    assert days(path) == [pod_days.LASTING]
    assert [seconds(path, day, day + 1) for day in (0, 1, 4, 5)] == [NOON, DAY, DAY, 0]


def test_a_pod_that_lasted_for_months_has_one_row(path: Path) -> None:
    write(path, spanning(NOON, 63 * DAY), at=99 * DAY)

    assert days(path) == [pod_days.LASTING]
    assert [seconds(path, day, day + 1) for day in (0, 40, 62, 63)] == [NOON, DAY, DAY, 0]


def test_late_knowledge_moves_a_pod_to_other_days(path: Path) -> None:
    write(path, spanning(NOON, 3 * DAY), spanning(5 * DAY, 6 * DAY, revision=2), at=9 * DAY)
    assert [seconds(path, day, day + 1) for day in (0, 1, 5)] == [0, 0, DAY]

    write(path, spanning(5 * DAY, None, revision=3), at=9 * DAY)
    assert [seconds(path, day, day + 1) for day in (1, 5, 8)] == [0, DAY, DAY]


def test_a_pod_that_ends_between_two_pages_is_found_on_its_new_days(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The days that there are belong to the transaction that reads a page."""
    monkeypatch.setattr(SqliteRows, "page_pods", 1)
    others = [pod(each, segment(NOON, None), end_us=None, end_by=None, gap=None) for each in ("b", "c")]
    write(path, *others, spanning(NOON, None), at=2 * DAY)
    with SqliteLedger(path) as ledger, open_reader(str(path)) as reader:
        rows = reader._rows  # type: ignore[attr-defined] # of the only implementation

        def read(sql: str, *values: object) -> object:
            if "pod_revisions" in sql and not done:
                done.append(rows(sql, *values))
                ledger.write(step(spanning(NOON, 3 * DAY, revision=2), at=3 * DAY, live=None))
                return done[0]
            return rows(sql, *values)

        done: list[object] = []
        monkeypatch.setattr(reader, "_rows", read)
        found = reader.allocated(Window(0, US_PER_DAY), ("tenant",))

    assert done
    assert sum(each.gpu_time for each in found) == 3 * NOON * GPU_SECOND


@pytest.mark.parametrize(
    ("end", "change"),
    [
        (3, "DELETE FROM pod_days WHERE day = 0"),
        (3, "DELETE FROM pod_days WHERE day = 2"),
        (90, "DELETE FROM pod_days"),
        (None, "UPDATE pod_days SET day = 0"),
    ],
)
def test_a_pod_that_reports_of_its_first_or_last_day_would_miss_is_damage(
    path: Path, end: int | None, change: str
) -> None:
    found = spanning(NOON, end and end * DAY)
    with SqliteLedger(path) as ledger:
        ledger.write(step(found, at=99 * DAY, pods={} if end else {found.uid: found}, live=line(found)))
    with closing(sqlite3.connect(path)) as connection:
        assert [*steps(connection)]
        connection.execute(change)

        with pytest.raises(LedgerDamaged, match="pod a lacks one of its days"):
            assert [*steps(connection)]


@pytest.mark.parametrize("ends", [(3, 2), (3, 90), (90, 3), (None, 3, 90)])
def test_retention_leaves_no_row_of_any_revision(path: Path, ends: Sequence[int | None]) -> None:
    spans = [spanning(NOON, end and end * DAY, revision=number) for number, end in enumerate(ends, 1)]
    write(path, *spans, at=2 * DAY)
    with SqliteLedger(path) as ledger:
        ledger.write(step(at=99 * DAY, live=None))
        assert [*ledger.roll_up(99 * US_PER_DAY)][-1] == 1

    assert days(path) == []

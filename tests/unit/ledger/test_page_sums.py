"""Sums of pages of ended pods are stored, read instead of segments, and withdrawn when one of the pods changes."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gputally.errors import LedgerDamaged
from gputally.ledger.open import open_reader
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import Window
from gputally.ledger.sqlite import summed_pages
from gputally.ledger.sqlite.integrity import steps
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.pod_record import PodRecord
from gputally.model.units import GPU_SECOND, US_PER_DAY
from tests.contract.records import pod, segment, step

DAY = 86_400
NOON = DAY // 2
ALL = Window(0, 9 * US_PER_DAY)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteLedger]:
    """Two pages: of the first, pod a lasts; pods b, c and d ran from noon to noon."""
    monkeypatch.setattr(summed_pages, "PAGE", 2)
    monkeypatch.setattr(summed_pages, "_MOST_LEFT_OUT", 0.5)
    with SqliteLedger(path) as ledger:
        write(ledger, running("a"), ended("b"), ended("c"), ended("d"))
        yield ledger


def running(uid: str) -> PodRecord:
    return pod(uid, segment(NOON, None), end_us=None, end_by=None, gap=None)


def ended(uid: str, *, at: int = DAY + NOON, revision: int = 1) -> PodRecord:
    return pod(uid, segment(NOON, at), revision=revision, gap=None, job=f"job-{uid}")


def write(ledger: SqliteLedger, *records: PodRecord) -> None:
    """Each in a step of its own."""
    for each in records:
        ledger.write(step(each, at=9 * DAY, live=None))


def summed(path: Path) -> dict[int, str]:
    """The pages with sums, and what these leave out."""
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT page, left_out FROM summed_pages"))


def days(reader: LedgerReader) -> float:
    """The GPU-days of all pods but a."""
    found = reader.allocated(ALL, ("job",))
    return sum(each.gpu_time for each in found if each.labels != ("train",)) / GPU_SECOND / DAY


def test_readers_use_the_sums_of_whole_pages(ledger: SqliteLedger, path: Path) -> None:
    assert list(ledger.add_up()) == [1, 3]
    assert summed(path) == {0: "[1]", 1: "[]"}

    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE page_sums SET sums = (SELECT sums FROM page_sums WHERE page = 0) WHERE page = 1")
    with open_reader(str(path)) as reader:
        assert {each.labels for each in reader.allocated(ALL, ("job",))} == {("train",), ("job-b",)}


def test_a_page_is_not_added_up_before_it_is_full_and_most_pods_have_ended(
    ledger: SqliteLedger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summed_pages, "_MOST_LEFT_OUT", 0.4)
    write(ledger, ended("e"))

    assert list(ledger.add_up()) == [2]
    assert summed(path) == {1: "[]"}


def test_a_late_revision_withdraws_the_sums_of_its_page(ledger: SqliteLedger, path: Path) -> None:
    list(ledger.add_up())
    write(ledger, ended("c", at=3 * DAY + NOON, revision=2))

    assert summed(path) == {0: "[1]"}
    with open_reader(str(path)) as reader:
        assert days(reader) == 5
        list(ledger.add_up())
        assert summed(path) == {0: "[1]", 1: "[]"}
        assert days(reader) == 5


def test_a_pod_that_was_left_out_is_added_when_it_has_ended(ledger: SqliteLedger, path: Path) -> None:
    list(ledger.add_up())
    write(ledger, ended("a", revision=2))

    assert summed(path) == {0: "[1]", 1: "[]"}
    with open_reader(str(path)) as reader:
        assert days(reader) == 4
        assert list(ledger.add_up()) == [2]
        assert summed(path) == {0: "[]", 1: "[]"}
        assert days(reader) == 4


def test_what_is_rolled_up_is_in_no_sums(ledger: SqliteLedger, path: Path) -> None:
    list(ledger.add_up())
    with open_reader(str(path)) as reader:
        list(ledger.roll_up(9 * US_PER_DAY))
        assert summed(path) == {}
        assert days(reader) == 3


def test_a_write_that_fails_withdraws_nothing(ledger: SqliteLedger, path: Path) -> None:
    list(ledger.add_up())
    with pytest.raises(OverflowError):
        write(ledger, ended("c", at=1 << 62, revision=2))

    assert summed(path) == {0: "[1]", 1: "[]"}
    write(ledger, ended("c", at=3 * DAY + NOON, revision=2))
    assert summed(path) == {0: "[1]"}


def test_sums_that_are_withdrawn_during_a_read_are_read_again(
    ledger: SqliteLedger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(ledger.add_up())
    with open_reader(str(path)) as reader:
        rows = reader._rows  # type: ignore[attr-defined] # of the only implementation

        def read(sql: str, *values: object) -> object:
            found = rows(sql, *values)
            if "page_sums" in sql and not done:
                done.append(found)
                write(ledger, ended("c", at=3 * DAY + NOON, revision=2))
            return found

        done: list[object] = []
        monkeypatch.setattr(reader, "_rows", read)
        assert days(reader) == 5
        assert done


@pytest.mark.parametrize(
    "change", ["UPDATE page_sums SET sums = x'90'", "UPDATE page_sums SET sums = x'01'", "DELETE FROM page_sums"]
)
def test_sums_that_are_not_those_of_the_segments_are_damage(ledger: SqliteLedger, path: Path, change: str) -> None:
    write(ledger, ended("a", revision=2))
    list(ledger.add_up())
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert [*steps(connection)]
        connection.execute(change)

        with pytest.raises(
            LedgerDamaged, match=r"the stored sums of pods [13] to [24] are not those of their segments"
        ):
            assert [*steps(connection)]


def test_sums_that_cannot_be_read_are_said_to_be_damaged(ledger: SqliteLedger, path: Path) -> None:
    list(ledger.add_up())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE page_sums SET sums = x'01'")

    with open_reader(str(path)) as reader, pytest.raises(LedgerDamaged, match="stored sums cannot be read"):
        days(reader)

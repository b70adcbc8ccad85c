"""Several connections read the pages of a large ledger, with the same sums."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import pytest

from gputally.errors import LedgerError
from gputally.ledger.open import reading_once
from gputally.ledger.records import AllocatedTime, JobSet, Window
from gputally.ledger.sqlite import reader
from gputally.ledger.sqlite.file import reading
from gputally.ledger.sqlite.reader import SqliteLedgerReader
from gputally.ledger.sqlite.segment_pages import read_pages
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.contract.records import in_order, pod, segment, step, us

WINDOW = Window(us(1000), us(2000))
BY = ("tenant", "outcome")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of 103 pods with one to three revisions each."""
    path = tmp_path / "gputally.db"
    with SqliteLedger(path) as ledger:
        for revision in (1, 2, 3):
            records = [
                pod(
                    f"p{number}",
                    segment(1000, 1000 + number + revision, tenant=f"t{number % 7}"),
                    revision=revision,
                    job=f"job-{number % 11}",
                )
                for number in range(103)
                if number % 3 >= revision - 1
            ]
            ledger.write(step(*records, at=1500 + revision))
    return path


def read(path: Path) -> tuple[list[AllocatedTime], list[JobSet]]:
    with SqliteLedgerReader(path) as reader:
        reader.page_pods = 10
        times, jobs = reader.allocated_with_jobs(WINDOW, BY, jobs_by=("tenant",))
        return in_order(times), jobs


def test_two_connections_read_the_same_sums_and_jobs_as_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = read(path)
    opened = list[Path]()

    def connect(path: Path) -> AbstractContextManager[Connection]:
        opened.append(path)
        return reading(path)

    monkeypatch.setattr(reader, "LARGE", 100)
    monkeypatch.setattr(reader, "reading", connect)

    assert read(path) == alone
    assert opened == [path] * reader.READERS


def test_they_leave_no_files_beside_a_copy_that_nothing_uses(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LARGE", 100)
    before = sorted(path.parent.iterdir())

    with reading_once(str(path)) as found:
        assert found.allocated(WINDOW, BY)
    assert sorted(path.parent.iterdir()) == before


def test_pages_come_in_order_and_not_far_ahead() -> None:
    asked = list[int]()

    def pages() -> Iterator[Mapping[str, Any]]:
        for number in range(20):
            asked.append(number)
            yield {"number": number}

    def rows(_sql: str, values: Mapping[str, Any]) -> Sequence[tuple[Any, ...]]:
        return [(values["number"],)]

    found = read_pages([rows, rows], "", pages())

    assert next(found) == [(0,)]
    assert len(asked) <= 4
    assert [number for [(number,)] in found] == list(range(1, 20))


def test_an_error_of_any_connection_is_raised() -> None:
    def rows(_sql: str, values: Mapping[str, Any]) -> Sequence[tuple[Any, ...]]:
        if values["number"] == 3:
            raise LedgerError("damaged")
        return []

    with pytest.raises(LedgerError, match="damaged"):
        list(read_pages([rows, rows], "", iter([{"number": number} for number in range(9)])))

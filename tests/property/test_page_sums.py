"""Over random histories, stored sums never change what a reader answers, whatever is written and rolled up after."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gputally.errors import DetailRolledUp
from gputally.ledger.open import open_reader
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import Window
from gputally.ledger.sqlite import allocated_time, summed_pages
from gputally.ledger.sqlite.summed_pages import StoredSums
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_DAY
from tests.contract.records import in_order, step, us
from tests.property.examples import examples
from tests.property.test_roll_up import DAY, DAYS, JOBS, pods, times

QUESTIONS = (
    ((), ()),
    (("tenant", "state"), ("tenant",)),
    (("namespace", "job_kind", "job", "state"), ("namespace", "job_kind", "job")),
    (("state", "job", "tenant"), ("tenant",)),
    (("job",), ("job",)),
    (("node", "job"), ("job",)),
)


class Steps:
    """What happens to a ledger: pods are revised, sums are stored, and the past is rolled up."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._records: dict[str, PodRecord] = {}

    def revise(self, record: PodRecord) -> None:
        known = self._records.get(record.uid)
        self._records[record.uid] = replace(record, revision=known.revision + 1 if known else 1)
        self._ledger.write(
            step(self._records[record.uid], at=(DAYS + 1) * DAY, live=None, jobs=JOBS, pods={record.uid: record})
        )
        if record.end_us is not None:
            self._ledger.write(step(at=(DAYS + 1) * DAY, live=None, pods={record.uid: None}))

    def add_up(self) -> None:
        list(self._ledger.add_up())

    def roll_up(self, day: int) -> None:
        list(self._ledger.roll_up(day * US_PER_DAY))


def answers(reader: LedgerReader, window: Window, cuts: Sequence[int]) -> list[object]:
    """The sums and jobs of the window by all QUESTIONS; the error where the retention left less."""
    found = list[object]()
    for by, jobs_by in QUESTIONS:
        try:
            sums, jobs = reader.allocated_with_jobs(window, by, jobs_by=jobs_by, cuts=cuts)
            amounts = ((each, len(each.jobs), each.bound, each.wait_us) for each in jobs)
            sets = [(each.labels, str(each.price), each.period, *more) for each, *more in amounts]
            found.append((in_order(sums), sorted(sets)))
        except DetailRolledUp as error:
            found.append(str(error))
    return found


def answers_without_sums(reader: LedgerReader, window: Window, cuts: Sequence[int]) -> list[object]:
    """The same from the segments alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(allocated_time, "read_stored", lambda *_: StoredSums({}, {}))
        return answers(reader, window, cuts)


@st.composite
def happenings(draw: st.DrawFn) -> list[tuple[str, object]]:
    """A dozen steps; sums are stored more than once."""
    some = st.one_of(
        st.integers(0, 6).flatmap(lambda number: pods(f"pod-{number}")).map(lambda record: ("revise", record)),
        st.just(("add_up", None)),
        st.integers(1, DAYS).map(lambda day: ("roll_up", day)),
    )
    first = [("revise", draw(pods(f"pod-{number}"))) for number in range(draw(st.integers(2, 5)))]
    return [*first, ("add_up", None), *draw(st.lists(some, max_size=6)), ("add_up", None)]


@given(happenings(), st.lists(times, min_size=2, max_size=5, unique=True).map(sorted), st.integers(1, 3))
@examples(40)
def test_answers_are_the_same_with_stored_sums_and_without(
    happened: list[tuple[str, object]], bounds: list[int], size: int
) -> None:
    first, *cuts, last = map(us, bounds)
    queries = [(Window(first, last), cuts), (Window(first, last), []), (Window(us(1000), us((DAYS + 1) * DAY)), cuts)]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "ledger.db"
        patch.setattr(summed_pages, "PAGE", size)
        patch.setattr(summed_pages, "_MOST_LEFT_OUT", 0.5)
        with SqliteLedger(path) as ledger, open_reader(str(path)) as reader:
            steps = Steps(ledger)
            for name, given in happened:
                getattr(steps, name)(*([] if given is None else [given]))
                for each in queries:
                    assert answers(reader, *each) == answers_without_sums(reader, *each)
            list(ledger.check())

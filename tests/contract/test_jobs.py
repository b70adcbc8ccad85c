"""The different jobs of a read, on all back-ends and over two ledgers."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.ledger.joined import JoinedReader
from gputally.ledger.open import open_reader
from gputally.ledger.open_to_write import open_ledger
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import JOB, JobSet, Window
from gputally.model.allocation import State
from gputally.model.pod_record import PodRecord
from tests.contract.conftest import BACK_ENDS
from tests.contract.records import ALWAYS, in_order, pod, segment, step, us

BY = ("tier", "tenant", "namespace", "state")
JOBS_BY = ("tenant", "namespace")
CUTS = (us(1150), us(1250))
Key = tuple[tuple[str, ...], str, int]


def counts(found: Iterable[JobSet]) -> dict[Key, int]:
    """The number of jobs by labels, price and period."""
    return {(each.labels, each.price.key if each.price else "", each.period): len(each.jobs) for each in found}


def different_jobs(reader: LedgerReader, window: Window, cuts: tuple[int, ...]) -> dict[Key, int]:
    """The same from the segments, by name."""
    names = defaultdict[Key, set[tuple[str, str, str]]](set)
    for each in reader.segments(window):
        part, job = each.segment, (each.namespace, each.job_kind, each.job)
        for period, (start_us, end_us) in enumerate(pairwise((window.start_us, *cuts, window.end_us))):
            if max(part.start_us, start_us) < min(part.end_us or 0, end_us):
                key = (part.tenant, each.namespace), part.price.key if part.price else "", period
                names[key].add(job)
    return {key: len(jobs) for key, jobs in names.items()}


jobs = st.tuples(st.sampled_from(["ml", "web"]), st.sampled_from(["Job", "ml", ""]), st.sampled_from(["a", "b", "ml"]))
"""Names that are also names of other things."""
parts = st.builds(
    lambda start, length, tenant, state, priced: segment(
        start, start + length, tenant=tenant, state=state, **({} if priced else {"price": None})
    ),
    st.integers(1000, 1300),
    st.integers(1, 200),
    st.sampled_from(["red", "blue"]),
    st.sampled_from([State.STARTING, State.RUNNING]),
    st.booleans(),
)


@st.composite
def histories(draw: st.DrawFn) -> list[PodRecord]:
    """Pods of the same few jobs, some in two revisions."""
    found = []
    for number in range(draw(st.integers(0, 8))):
        namespace, kind, job = draw(jobs)
        for revision in range(1, draw(st.integers(1, 2)) + 1):
            segments = draw(st.lists(parts, min_size=1, max_size=3))
            names = {"namespace": namespace, "job_kind": kind, "job": job}
            found.append(pod(f"uid-{number}", *segments, revision=revision, **names))
    return found


def written(path: Path, revisions: Iterable[PodRecord], *, start: int) -> LedgerReader:
    """A reader of a ledger with these revisions, whose accounting started then."""
    with open_ledger(str(path)) as ledger:
        ledger.write(step())
        for each in revisions:
            ledger.write(step(each))
    reader = open_reader(str(path))
    assert reader.state().accounting_start_us == us(start)
    return reader


@pytest.mark.parametrize("back_end", BACK_ENDS)
@given(revisions=histories(), page=st.integers(1, 4), cuts=st.sampled_from([(), CUTS]))
def test_jobs_are_those_of_the_segments(
    back_end: str, revisions: list[PodRecord], page: int, cuts: tuple[int, ...]
) -> None:
    with TemporaryDirectory() as folder:
        found = BACK_ENDS[back_end](Path(folder))
        with found.open() as ledger, found.read() as reader:
            for each in revisions or [pod("empty")]:
                ledger.write(step(each))
            if hasattr(reader, "page_pods"):
                reader.page_pods = page
            window = Window(us(1050), us(1350))
            times, sets = reader.allocated_with_jobs(window, BY, jobs_by=JOBS_BY, cuts=cuts)

            assert counts(sets) == different_jobs(reader, window, cuts)
            assert in_order(times) == reader.allocated(window, BY, cuts=cuts)


def test_a_job_has_one_number_on_all_lines(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(
        step(
            pod("a", segment(1000, 1100), job="train"),
            pod("b", segment(1000, 1100, tenant="blue"), job="train"),
            pod("c", segment(1000, 1100, tenant="blue"), job="tune"),
        )
    )

    found = {each.labels: each.jobs for each in reader.allocated_with_jobs(ALWAYS, ("tenant",), jobs_by=("tenant",))[1]}

    assert {labels: len(numbers) for labels, numbers in found.items()} == {("red",): 1, ("blue",): 2}
    assert len(found["red",] | found["blue",]) == 2


def test_pods_wait_from_their_creation_to_their_binding_and_count_where_they_were_bound(
    ledger: Ledger, reader: LedgerReader
) -> None:
    """A pod that changes its tenant was bound once, and one bound before the window waited before it."""
    moved = pod("a", segment(1000, 1100), segment(1100, 1300, tenant="blue"), created_us=us(940), scheduled_us=us(1000))
    later = pod("b", segment(1200, 1250, tenant="blue"), created_us=us(1195), scheduled_us=us(1200))
    early = pod("c", segment(900, 1250, tenant="blue"), created_us=us(800), scheduled_us=us(900))
    ledger.write(step(moved, later, early))

    found = reader.allocated_with_jobs(
        Window(us(1000), us(2000)), ("tenant",), jobs_by=("tenant",), cuts=(us(1050), us(1150))
    )[1]

    assert {(*each.labels, each.period): (each.bound, each.wait_us) for each in found if each.bound} == {
        ("red", 0): (1, us(60)),
        ("blue", 2): (1, us(5)),
    }


def test_dimensions_of_jobs_are_some_of_the_sums(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, 1100))))

    with pytest.raises(ValueError, match="tier: not a dimension of a ledger; use tenant"):
        reader.allocated_with_jobs(ALWAYS, ("tenant",), jobs_by=("tier",))


def test_a_job_in_two_ledgers_is_one_job(tmp_path: Path) -> None:
    """An imported job that still runs when the accounting of the cluster starts."""
    old, new = pod("imported", segment(500, 1200), job="train"), pod("live", segment(1000, 1100), job="train")
    other = pod("other", segment(1000, 1100), job="tune")
    with (
        written(tmp_path / "history.db", [old], start=1000) as history,
        written(tmp_path / "live.db", [other, new], start=1000) as live,
    ):
        joined = JoinedReader(history=history, live=live)
        waits = [each.bound for each in joined.allocated_with_jobs(ALWAYS, ("tier",), jobs_by=())[1]]
        times, [one, *others] = joined.allocated_with_jobs(ALWAYS, (*JOB, "tier"), jobs_by=())

        assert sum(waits) == 3
        assert not others or len(one.jobs.union(*(each.jobs for each in others))) == 2
        assert len(one.jobs) == 2
        assert in_order(times) == in_order(joined.allocated(ALWAYS, (*JOB, "tier")))

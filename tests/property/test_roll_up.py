"""Over random histories, sums of whole days are the same before and after they are rolled up into daily rows."""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, combinations, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gputally.accounting.changes import Changes
from gputally.accounting.jobs.record import JobRecord
from gputally.ledger.open import open_reader
from gputally.ledger.preemption_records import LostTime
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import DIMENSIONS, MEASURED_DIMENSIONS, NodeSteps, Window
from gputally.ledger.sqlite import retention
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.allocation import End, Outcome, Result, State
from gputally.model.lost_work import CheckpointSource, LostPod, LostWork
from gputally.model.pod_record import PodRecord
from gputally.model.units import GPU, US_PER_DAY, US_PER_SECOND
from gputally.model.usage import AssignmentHour
from gputally.model.waits import PendingSegmentRow
from tests.contract.records import BALANCED, LOST_WORK, OPENED_S, PRICE, WAIT, in_order, line, pod, segment, step, us
from tests.contract.test_measured_time import WHOLE, hour
from tests.contract.test_record_starts import LISTS, listed
from tests.contract.test_usage import reported
from tests.core.closings import close
from tests.fakes.waits_ledger import QUOTA
from tests.property.examples import examples

DAY = 86_400
DAYS = 5
CHEAP = replace(PRICE, key="cheap")
SUMMED = tuple(each for each in DIMENSIONS if each != "name")
MEASURED = tuple(each for each in MEASURED_DIMENSIONS if each != "name")
JOBS = {
    uid: JobRecord(uid=uid, namespace="ml", name=uid, created_us=0, outcome=outcome)
    for uid, outcome in (("job-1", Outcome.SUCCEEDED), ("job-2", Outcome.RUNNING))
}
times = st.one_of(st.integers(0, DAYS * DAY), st.integers(0, DAYS).map(lambda day: day * DAY))


@st.composite
def pods(draw: st.DrawFn, uid: str) -> PodRecord:
    """A pod of two resources, of which labels and price change; it may last, and its Job too."""
    cuts = sorted(draw(st.lists(times, min_size=2, max_size=4, unique=True)))
    parts = [
        segment(
            start,
            end,
            tenant=draw(st.sampled_from(["red", "blue"])),
            state=draw(st.sampled_from([State.STARTING, State.RUNNING])),
            price=draw(st.sampled_from([PRICE, CHEAP, None])),
            resource=draw(st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig"])),
            quantity=draw(st.sampled_from([0, 1, GPU, 200 * GPU + 1])),
        )
        for start, end in pairwise(cuts)
    ]
    if draw(st.sampled_from([False, False, True])):
        parts[-1] = replace(parts[-1], end_us=None)
    uncontrolled = pod(uid)
    owner = uncontrolled.owner and replace(uncontrolled.owner, uid=draw(st.sampled_from([*JOBS, "job-3"])))
    return pod(
        uid,
        *parts,
        end_us=parts[-1].end_us,
        end_by=None if parts[-1].end_us is None else End.VANISHED,
        gap=None,
        namespace=draw(st.sampled_from(["ml", "web"])),
        job=draw(st.sampled_from(["train", "serve"])),
        node_uid=draw(st.sampled_from(["node-1", "node-2"])),
        owner=draw(st.sampled_from([None, owner])),
        result=draw(st.sampled_from([None, Result("Succeeded", "", 0), Result("Failed", "Error", 1)])),
    )


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[PodRecord], list[AssignmentHour]]:
    """Pods and what was measured of them, also before and after their allocation."""
    found = [draw(pods(f"pod-{number}")) for number in range(draw(st.integers(1, 5)))]
    spans = draw(st.lists(st.tuples(times, st.integers(0, 3600)), max_size=5))
    used = [draw(st.integers(0, length)) for _, length in spans]
    hours = [
        hour(
            start,
            start + length,
            since=number,
            used=used[number],
            burst=draw(st.integers(0, min(3, used[number]))),  # an agent that tells more is refused
            energy=draw(st.integers(0, 10**9)),
            of=replace(
                WHOLE,
                pod_uid=draw(st.sampled_from(found)).uid,
                resource=draw(st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig", "other"])),
                ahead_us=us(draw(st.integers(-5, 5))),
            ),
        )
        for number, (start, length) in enumerate(spans)
    ]
    return found, [replace(each, open=False) for each in hours]


def write(ledger: Ledger, found: Sequence[PodRecord], hours: Sequence[AssignmentHour]) -> None:
    """Each pod is recorded when it ends, or as it begins."""
    known: list[PodRecord] = []
    for each in sorted(found, key=_recorded_us):
        known.append(each)
        at, live = _recorded_us(each) // US_PER_SECOND, line(*known)
        working = {} if each.end_us else {each.uid: each}
        assert ledger.write(step(each, at=at, live=live, pods=working, jobs=JOBS)) == BALANCED
    ledger.write(reported(*hours, at=(DAYS + 1) * DAY))


def _recorded_us(record: PodRecord) -> int:
    return record.end_us or record.segments[0].start_us


def all_sums(reader: LedgerReader, window: Window, cuts: Sequence[int]) -> Iterator[object]:
    """Everything a report reads: sums and jobs by single, some and all dimensions, and what nodes had allocated."""
    for by in ((), *combinations(SUMMED, 1), SUMMED[:3], SUMMED[-3:], SUMMED):
        times, jobs = reader.allocated_with_jobs(window, by, jobs_by=by[:1], cuts=cuts)
        yield by, in_order(times), sorted((each.labels, str(each.price), each.period, len(each.jobs)) for each in jobs)
        yield by, reader.allocated(window, by, cuts=cuts)
    for by in ((), *combinations(MEASURED, 1), MEASURED):
        yield by, reader.measured(window, by, cuts=cuts)
    yield [reader.lost(window, by, cuts=cuts) for by in ((), MEASURED)]
    yield [levels(each) for each in reader.allocated_steps(window) if levels(each)]


@st.composite
def losses(draw: st.DrawFn, found: Sequence[PodRecord]) -> dict[str, LostWork]:
    """Some of the pods that ended lost work to the preemption of the first one, since any time."""
    lost = tuple(
        LostPod(each.uid, us(draw(times)), each.end_us, draw(st.sampled_from(CheckpointSource)))
        for each in found
        if each.end_us and draw(st.booleans())
    )
    return {"pod-0": replace(LOST_WORK, victim_uid="pod-0", pods=lost)}


def most_lost(reader: LedgerReader, window: Window, by: Sequence[str], cuts: Sequence[int]) -> Iterator[bool]:
    """Whether no more is lost than there was, by price, dimensions and period."""
    lost = defaultdict[object, Counter[str]](Counter)
    for each in reader.lost(window, by, cuts=cuts):
        amounts = {name: getattr(each, name) for name in ("gpu_time", "measured", "used", "burst")}
        lost[each.labels, each.price, each.period].update(amounts)
    for time in reader.allocated(window, by, cuts=cuts):
        yield time.gpu_time >= lost[time.labels, time.price, time.period].pop("gpu_time", 0)
    for usage in reader.measured(window, by, cuts=cuts):
        found = lost[usage.labels, usage.price, usage.period]
        yield all(getattr(usage, name) >= found.pop(name, 0) for name in ("measured", "used", "burst"))
    yield not any(map(Counter.total, lost.values()))


@given(histories(), st.lists(times, min_size=2, max_size=4, unique=True).map(sorted), st.data())
@examples(50)
def test_no_pod_loses_more_than_it_had_and_used(
    history: tuple[list[PodRecord], list[AssignmentHour]], bounds: list[int], data: st.DataObject
) -> None:
    first, *cuts, last = map(us, bounds)
    lost = data.draw(losses(history[0]))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        with SqliteLedger(path) as ledger, open_reader(str(path)) as reader:
            write(ledger, *history)
            ledger.write(step(at=(DAYS + 1) * DAY, live=None, lost_work=lost))
            window, names = Window(first, last), MEASURED_DIMENSIONS

            assert all(most_lost(reader, window, names, cuts))
            parts = [reader.lost(Window(*each), ()) for each in pairwise([first, *cuts, last])]
            assert amounts(chain.from_iterable(parts)) == amounts(reader.lost(window, names, cuts=cuts))


def amounts(found: Iterable[LostTime]) -> Counter[str]:
    """All of it by basis and measure."""
    sums = Counter[str]()
    for each in found:
        sums.update({f"{each.basis} {name}": getattr(each, name) for name in ("gpu_time", "measured", "used", "burst")})
    return +sums


def levels(node: NodeSteps) -> list[tuple[str, int, int]]:
    """The µGPU allocated on a node, from each instant on at which it changes."""
    level, found = 0, dict[int, int]()
    for at_us, change in node.steps:
        level += change
        found[at_us] = level
    changes = pairwise([(0, 0), *found.items()])
    return [(node.node_uid, at_us, after) for (_, before), (at_us, after) in changes if before != after]


@given(histories(), st.integers(1, DAYS + 1), st.data())
@examples(25)
def test_sums_of_whole_days_stay_the_same(
    history: tuple[list[PodRecord], list[AssignmentHour]], day: int, data: st.DataObject
) -> None:
    size = data.draw(st.sampled_from([1, 2, 50]))
    bounds = sorted(data.draw(st.sets(st.integers(0, DAYS + 1), min_size=2, max_size=4)))
    first, *cuts, last = (each * US_PER_DAY for each in bounds)
    queries = [(Window(first, last), cuts), (Window(us(OPENED_S), last), [])]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "ledger.db"
        for name in ("_PAGE", "_PODS", "_HOURS"):
            patch.setattr(retention, name, size)
        with SqliteLedger(path) as ledger, open_reader(str(path)) as reader:
            write(ledger, *history)
            ledger.write(step(at=(DAYS + 1) * DAY, live=None, lost_work=data.draw(losses(history[0]))))
            edge_us = us(data.draw(st.integers(OPENED_S + 1, DAYS * DAY)))
            close(ledger, reader, Window(us(OPENED_S), edge_us))
            queries.append((Window(us(OPENED_S), (DAYS + 1) * US_PER_DAY), [edge_us]))
            before = [list(all_sums(reader, *each)) for each in queries]
            for _ in ledger.roll_up(day * US_PER_DAY):
                assert [list(all_sums(reader, *each)) for each in queries] == before
            list(ledger.check())
            assert known(path).isdisjoint(final(*history, day=day))


@st.composite
def all_waits(draw: st.DrawFn) -> Changes:
    """Waits of pods and of workloads, some of which last."""
    spans = st.lists(st.tuples(times, st.integers(0, DAY)), max_size=4, unique_by=lambda each: each[0])
    of_pods = [_span(draw, each) for each in draw(spans)]
    lacking = [_span(draw, each) for each in draw(spans)]
    found = {("a", at_us): replace(WAIT, from_us=at_us, to_us=to_us) for at_us, to_us in of_pods}
    return step(
        at=(DAYS + 1) * DAY,
        live=None,
        waits={key: PendingSegmentRow(uid="a", namespace="ml", name="pod-a", wait=each) for key, each in found.items()},
        uncreated_waits={
            ("ml", QUOTA.uid, at_us): replace(QUOTA, from_us=at_us, to_us=to_us) for at_us, to_us in lacking
        },
    )


def _span(draw: st.DrawFn, span: tuple[int, int]) -> tuple[int, int | None]:
    start, length = span
    return us(start), draw(st.sampled_from([None, us(start + length)]))


def lists_from(reader: LedgerReader, starts: Mapping[str, int]) -> dict[str, list[object] | None]:
    """All lists of single records, each from a time on."""
    return {name: listed(reader, name, Window(from_us, (DAYS + 2) * US_PER_DAY)) for name, from_us in starts.items()}


@given(histories(), all_waits(), st.integers(1, DAYS + 1))
@examples(25)
def test_from_the_time_that_a_list_states_retention_deletes_nothing_of_it(
    history: tuple[list[PodRecord], list[AssignmentHour]], waits: Changes, day: int
) -> None:
    starts = {at_us: lists for at_us in (us(OPENED_S), day * US_PER_DAY) for lists in (dict.fromkeys(LISTS, at_us),)}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        with SqliteLedger(path) as ledger, open_reader(str(path)) as reader:
            write(ledger, *history)
            ledger.write(waits)
            before = {at_us: lists_from(reader, lists) for at_us, lists in starts.items()}
            for _ in ledger.roll_up(day * US_PER_DAY):
                stated = {name: reader.state().records_from_us(records) or 0 for name, (records, _) in LISTS.items()}
                found = lists_from(reader, stated)
                assert found == {name: before[from_us][name] for name, from_us in stated.items()}


def final(found: Sequence[PodRecord], hours: Sequence[AssignmentHour], *, day: int) -> set[str]:
    """The pods whose allocation and usage ended before this day, and whose Job has ended."""
    measured = {each.assignment.pod_uid for each in hours if each.hour.to_us - each.assignment.ahead_us > us(day * DAY)}
    ended = {each.uid for each in found if each.end_us and each.end_us <= us(day * DAY)}
    return ended - measured - {each.uid for each in found if each.owner and each.owner.uid == "job-2"}


def known(path: Path) -> set[str]:
    """The pods that have rows of their own."""
    with closing(sqlite3.connect(path)) as connection:
        return {uid for (uid,) in connection.execute("SELECT uid FROM pods")}

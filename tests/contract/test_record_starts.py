"""From when on a ledger has records of each kind, on all back-ends: before, "none" means that nothing is known."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from gputally.accounting.changes import Changes
from gputally.errors import DetailRolledUp
from gputally.ledger.joined import JoinedReader
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import IMPORTED, Records, Window
from gputally.model.units import US_PER_DAY
from gputally.model.usage import UnallocatedHour
from gputally.model.waits import PendingSegmentRow
from tests.contract.conftest import BackEnd, sqlite
from tests.contract.records import (
    ALWAYS,
    LOST_WORK,
    OPENED_S,
    PREEMPTED,
    WAIT,
    pod,
    segment,
    step,
    us,
)
from tests.contract.test_measured_time import WHOLE, hour
from tests.contract.test_usage import UNALLOCATED_HOUR, reported
from tests.fakes.waits_ledger import QUOTA


def starts(reader: LedgerReader) -> dict[Records, int | None]:
    return {each: reader.state().records_from_us(each) for each in Records}


def waits(*from_s: int) -> dict[tuple[str, int], PendingSegmentRow | None]:
    found = (replace(WAIT, from_us=us(each), to_us=us(each) + 1) for each in from_s)
    return {("a", each.from_us): PendingSegmentRow(uid="a", namespace="ml", name="pod-a", wait=each) for each in found}


def test_a_new_ledger_has_all_records_from_its_accounting_start_on(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(at=OPENED_S + 500))
    ledger.write(step(at=OPENED_S + 600, waits=waits(OPENED_S + 550)))

    assert set(starts(reader).values()) == {us(OPENED_S)}


def test_waits_begin_anew_after_a_time_without_the_feature(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(at=2000, waits=waits(1900)))
    ledger.write(replace(step(at=3000), has_waits=False))
    assert starts(reader)[Records.WAITS] is None

    ledger.write(step(at=4000))
    ledger.write(step(at=5000))
    assert starts(reader)[Records.WAITS] == us(4000)
    assert starts(reader)[Records.DISRUPTIONS] == us(OPENED_S)


def test_the_retention_deletes_waits_and_no_preemptions(back_end: BackEnd) -> None:
    with back_end.open() as ledger, back_end.read() as reader:
        ledger.write(step(at=2000, waits=waits(1900)))
        back_end.tamper(f"INSERT INTO meta VALUES ('detail_start_us', {3 * US_PER_DAY})")

        assert starts(reader)[Records.WAITS] == starts(reader)[Records.PODS] == 3 * US_PER_DAY
        assert starts(reader)[Records.DISRUPTIONS] == us(OPENED_S)


DAY: Final = 86_400
LISTS: Final[Mapping[str, tuple[Records, Callable[[LedgerReader, Window], Iterable[object]]]]] = {
    "allocations": (Records.PODS, lambda reader, window: reader.allocations(window)),
    "segments": (Records.PODS, lambda reader, window: reader.segments(window)),
    "usage": (Records.PODS, lambda reader, window: reader.usage(window)),
    "bindings": (Records.PODS, lambda reader, window: reader.bindings(window, ["node-1"])),
    "gaps": (Records.PODS, lambda reader, window: reader.gaps(window)),
    "unallocated usage": (Records.PODS, lambda reader, window: reader.unallocated_usage(window)),
    "preemptions": (Records.DISRUPTIONS, lambda reader, window: reader.preemptions(window)),
    "disruptions": (Records.DISRUPTIONS, lambda reader, window: reader.disruptions(window)),
    "lost work": (
        Records.DISRUPTIONS,
        lambda reader, window: [replace(each, pods=()) for each in reader.lost_work(window).values()],
    ),
    "waits of pods": (Records.WAITS, lambda reader, window: reader.waits(window)),
    "waits": (Records.WAITS, lambda reader, window: reader.pending_times(window)),
}
"""All lists of single records, each with the kind that says from when on it has them."""


def lacking(*from_s: int) -> Changes:
    found = (replace(QUOTA, from_us=us(each), to_us=us(each) + 1) for each in from_s)
    return step(at=30 * DAY, uncreated_waits={("ml", "job-1", each.from_us): each for each in found})


def ended(uid: str, start: int, end: int) -> Changes:
    return step(pod(uid, segment(start, end), scheduled_us=us(start), end_us=us(end), gap=None), at=end)


def disrupted(*at_s: int) -> Changes:
    uids = {f"v{each}": us(each) for each in at_s}
    return step(
        at=30 * DAY,
        victims={uid: replace(PREEMPTED, victim_uid=uid, decided_us=at) for uid, at in uids.items()},
        lost_work={uid: replace(LOST_WORK, victim_uid=uid) for uid in uids},
    )


def outside(*at_s: int) -> Changes:
    def row(at: int) -> UnallocatedHour:
        return replace(
            UNALLOCATED_HOUR,
            key=UNALLOCATED_HOUR.key._replace(start_us=us(at)),
            hour=replace(UNALLOCATED_HOUR.hour, start_us=us(at)),
        )

    return reported(*map(row, at_s), at=30 * DAY)


def measured(uid: str, start: int, end: int) -> Changes:
    return reported(replace(hour(start, end, of=replace(WHOLE, pod_uid=uid)), open=False), at=30 * DAY)


WRITTEN: Final[Mapping[str, tuple[Changes, ...]]] = {
    "waits": (step(at=30 * DAY, waits=waits(2 * DAY, 9 * DAY)),),
    "many waits": (step(at=30 * DAY, waits=waits(*range(2 * DAY, 2 * DAY + 1500), 9 * DAY)),),
    "waits of workloads": (lacking(2 * DAY, 9 * DAY),),
    "disruptions": (disrupted(2 * DAY, 9 * DAY),),
    "pods": (ended("old", 2 * DAY, 2 * DAY + 60), ended("new", 9 * DAY, 9 * DAY + 60)),
    "usage": (
        ended("old", 2 * DAY, 2 * DAY + 3600),
        measured("old", 2 * DAY, 2 * DAY + 3600),
        ended("new", 9 * DAY, 9 * DAY + 3600),
        measured("new", 9 * DAY, 9 * DAY + 3600),
    ),
    "usage outside any pod": (outside(2 * DAY, 2 * DAY + 3600, 9 * DAY),),
}
"""Each kind of records alone, from before and after the retention: none relies on the deletion of another one."""


def listed(reader: LedgerReader, name: str, window: Window) -> list[object] | None:
    """The list, None if the ledger refuses it as retention left no single records of the window."""
    try:
        return list(LISTS[name][1](reader, window))
    except DetailRolledUp:
        return None


@pytest.mark.parametrize("written", WRITTEN)
def test_from_the_time_that_a_list_states_retention_deletes_nothing_of_it(
    ledger: Ledger, reader: LedgerReader, written: str
) -> None:
    for changes in WRITTEN[written]:
        ledger.write(changes)
    before = {name: listed(reader, name, ALWAYS) for name in LISTS}
    later = {name: listed(reader, name, Window(5 * US_PER_DAY, ALWAYS.end_us)) for name in LISTS}
    for _ in ledger.roll_up(5 * US_PER_DAY):
        pass

    for name, (records, _) in LISTS.items():
        from_us = reader.state().records_from_us(records)
        assert from_us in {us(OPENED_S), 5 * US_PER_DAY}, name
        expected = before if from_us == us(OPENED_S) else later
        assert listed(reader, name, Window(from_us or 0, ALWAYS.end_us)) == expected[name], name


def test_waits_that_retention_deletes_move_no_start_of_other_records(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(at=30 * DAY, waits=waits(2 * DAY)))
    for _ in ledger.roll_up(5 * US_PER_DAY):
        pass
    for _ in ledger.roll_up(6 * US_PER_DAY):  # has nothing to delete
        pass
    ledger.write(step(at=31 * DAY))

    assert starts(reader) == dict.fromkeys(Records, us(OPENED_S)) | {Records.WAITS: 5 * US_PER_DAY}


def test_waits_that_are_off_stay_so_when_retention_deletes_the_old_ones(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(at=30 * DAY, waits=waits(2 * DAY)))
    ledger.write(replace(step(at=31 * DAY), has_waits=False))
    for _ in ledger.roll_up(5 * US_PER_DAY):
        pass

    assert starts(reader)[Records.WAITS] is None


@pytest.mark.parametrize("records", [Records.DISRUPTIONS, Records.WAITS])
def test_imported_jobs_have_neither_waits_nor_preemptions(back_end: BackEnd, records: Records) -> None:
    with back_end.open() as ledger:
        ledger.bind(IMPORTED)
        ledger.write(step(at=2000))
    with back_end.read() as reader:
        assert reader.state().records_from_us(records) is None
        assert reader.state().records_from_us(Records.ALLOCATIONS) == us(OPENED_S)


def test_of_a_history_and_a_ledger_the_ledger_has_the_waits(back_end: BackEnd, tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    other = sqlite(tmp_path / "history")
    with other.open() as history:
        history.write(replace(step(at=50), accounting_start_us=us(10)))
    with back_end.open() as ledger:
        ledger.write(step(at=2000))
    with other.read() as before, back_end.read() as live:
        assert starts(JoinedReader(history=before, live=live)) == {
            Records.ALLOCATIONS: us(10),
            Records.PODS: us(10),
            Records.DISRUPTIONS: us(OPENED_S),
            Records.WAITS: us(OPENED_S),
        }

"""Allocations that are rolled up into daily rows, on all back-ends."""

import logging
import re
from itertools import pairwise
from typing import Any

import pytest

from gputally.errors import DetailRolledUp
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import Window
from gputally.model.allocation import Gap, State
from gputally.model.node_record import NodeRecord
from gputally.model.pod_record import PodRecord
from gputally.model.units import GPU, US_PER_DAY, US_PER_HOUR, US_PER_SECOND
from gputally.model.usage import GpuHour, GpuKey, UnallocatedHour
from tests.contract.conftest import BackEnd
from tests.contract.records import BALANCED, FACTS, OPENED_S, pod, segment, segments_of, step, us
from tests.contract.test_usage import reported
from tests.core.closings import close

DAY = 86_400
OLD = pod("old", segment(DAY, 2 * DAY + 7), end_us=us(2 * DAY + 7), gap=None)
NEW = pod("new", segment(2 * DAY, 9 * DAY), end_us=us(9 * DAY), gap=None)
ALL = Window(us(OPENED_S), 20 * US_PER_DAY)


def written(ledger: Ledger, *pods: PodRecord) -> None:
    for each in pods:
        assert each.end_us
        ledger.write(step(each, at=each.end_us // US_PER_SECOND))


def rolled(ledger: Ledger, *, day: int) -> int:
    """How many allocations were rolled up."""
    return [0, *ledger.roll_up(day * US_PER_DAY)][-1]


def by_day(reader: LedgerReader, *by: str) -> dict[tuple[int, tuple[str, ...]], float]:
    """GPU-seconds by day and labels."""
    found = reader.allocated(Window(0, 20 * US_PER_DAY), by, cuts=[day * US_PER_DAY for day in range(1, 20)])
    return {(each.period, each.labels): each.gpu_time / GPU / US_PER_SECOND for each in found}


def test_only_allocations_that_ended_before_are_rolled_up(ledger: Ledger, reader: LedgerReader) -> None:
    written(ledger, OLD, NEW)
    before = by_day(reader, "job")

    assert rolled(ledger, day=2) == 0
    assert reader.state().detail_start_us is None
    assert rolled(ledger, day=3) == 1
    assert reader.state().detail_start_us == 3 * US_PER_DAY
    assert rolled(ledger, day=3) == 0

    assert by_day(reader, "job") == before
    assert before[2, ("train",)] == 7 + DAY
    late = pod("new", segment(3 * DAY, 9 * DAY), end_us=NEW.end_us, gap=None)
    assert list(reader.segments(Window(3 * US_PER_DAY, 9 * US_PER_DAY))) == segments_of(late)


def test_what_may_still_change_stays(ledger: Ledger, reader: LedgerReader) -> None:
    kept = pod("kept", segment(DAY, DAY + 1), end_us=us(DAY + 1))
    late = pod("late", segment(DAY, DAY + 1), end_us=us(DAY + 1))
    ledger.write(step(OLD, kept, at=2 * DAY + 7, pods={kept.uid: kept}))
    ledger.write(step(late, at=8 * DAY))

    assert rolled(ledger, day=5) == 1
    assert {each.labels for each in reader.allocated(Window(3 * US_PER_DAY, ALL.end_us), ("name",))} == set()
    ledger.write(step(at=9 * DAY, pods={kept.uid: None}))
    assert rolled(ledger, day=5) == 1
    assert rolled(ledger, day=9) == 1


@pytest.mark.parametrize(
    ("window", "by", "cuts", "problem"),
    [
        (Window(US_PER_DAY + 1, 9 * US_PER_DAY), (), [], "1970-01-02 00:00:00 UTC is inside a day before 1970-01-04"),
        (Window(0, 2 * US_PER_DAY + us(1)), (), [], "1970-01-03 00:00:01 UTC is inside a day before 1970-01-04"),
        (Window(0, 9 * US_PER_DAY), (), [us(DAY + 3600)], "1970-01-02 01:00:00 UTC is inside a day before 1970-01-04"),
        (Window(0, 9 * US_PER_DAY), ("name",), [], "pods are not known before 1970-01-04"),
    ],
)
def test_parts_of_days_and_pods_are_rejected(
    ledger: Ledger, reader: LedgerReader, window: Window, by: tuple[str, ...], cuts: list[int], problem: str
) -> None:
    written(ledger, OLD, NEW)
    assert rolled(ledger, day=3) == 1

    with pytest.raises(
        DetailRolledUp, match=re.escape(f"{problem}, of which the retention left daily sums; use whole ")
    ):
        reader.allocated(window, by, cuts=cuts)
    with pytest.raises(DetailRolledUp, match=re.escape(problem)):
        reader.measured(window, by, cuts=cuts)
    later = Window(3 * US_PER_DAY + 1, 9 * US_PER_DAY)
    assert sum(each.gpu_time for each in reader.allocated(later, ("name",))) == GPU * (6 * US_PER_DAY - 1)


def test_single_records_are_rejected_before_the_details_begin(ledger: Ledger, reader: LedgerReader) -> None:
    written(ledger, OLD, NEW)
    assert rolled(ledger, day=3) == 1

    early, late = Window(3 * US_PER_DAY - 1, 9 * US_PER_DAY), Window(3 * US_PER_DAY, 9 * US_PER_DAY)
    for read in (reader.segments, reader.allocations, reader.usage, reader.gaps):
        with pytest.raises(DetailRolledUp, match="are known only from 1970-01-04 UTC on; use a later period"):
            list(read(early))
    assert [each.pod_uid for each in reader.allocations(late)] == ["new"]


def test_a_late_revision_of_one_that_is_rolled_up_does_not_count_again(
    ledger: Ledger, reader: LedgerReader, caplog: pytest.LogCaptureFixture
) -> None:
    written(ledger, OLD, NEW)
    before = by_day(reader)
    assert rolled(ledger, day=3) == 1

    late = pod("old", segment(DAY, 2 * DAY + 9), revision=7, end_us=us(2 * DAY + 9))
    with caplog.at_level(logging.WARNING):
        assert ledger.write(step(late, at=10 * DAY, live=None)) == {}

    assert by_day(reader) == before
    [entry] = [each.getMessage() for each in caplog.records]
    assert entry == "1 late changes of allocations that --ledger.retention rolled up are ignored, of the pods old"


def test_the_balance_stays_and_later_writes_continue(back_end: BackEnd) -> None:
    open_pod = pod("open", segment(DAY, None), end_us=None, gap=None)
    with back_end.open() as ledger:
        ledger.write(step(OLD, at=2 * DAY + 7))
        ledger.write(step(open_pod, at=2 * DAY + 8, pods={"open": open_pod}))
        assert rolled(ledger, day=3) == 1
        list(ledger.check())
    with back_end.open() as ledger:
        both = step(OLD, open_pod).live
        assert ledger.write(step(at=3 * DAY, live=both)) == BALANCED
        assert rolled(ledger, day=4) == 0
        list(ledger.check())


def test_the_day_of_the_accounting_start_has_two_parts(ledger: Ledger, reader: LedgerReader) -> None:
    early = pod("early", segment(0, 2000), end_us=us(2000))
    ledger.write(step(early, at=2000))
    assert rolled(ledger, day=1) == 1

    assert [each.gpu_time for each in reader.allocated(ALL, ())] == [(2000 - OPENED_S) * GPU * US_PER_SECOND]
    assert [each.gpu_time for each in reader.allocated(Window(0, ALL.end_us), ())] == [2000 * GPU * US_PER_SECOND]


def test_capacity_of_a_node_deleted_in_a_gap_still_lasts_as_long_as_its_pods(
    ledger: Ledger, reader: LedgerReader
) -> None:
    node = NodeRecord(
        uid="node-1", name="n1", created_us=us(900), facts=((us(900), FACTS),), gone_us=us(1500), gone_by_us=us(1600)
    )
    ledger.write(step(at=1600, nodes={"node-1": node}, capacity={("node-1", us(900)): ("n1", FACTS)}))
    found = [pod(uid, segment(1000, end), end_us=us(end), gap=None) for uid, end in (("a", 1520), ("b", 1540))]
    ledger.write(step(*found, at=1700))
    ends = [each.end_us for each in reader.capacity(Window(us(1000), US_PER_DAY))]

    assert rolled(ledger, day=1) == 2
    assert [each.end_us for each in reader.capacity(Window(us(1000), US_PER_DAY))] == ends == [us(1540)]


def test_a_gap_in_detail_is_still_returned(ledger: Ledger, reader: LedgerReader) -> None:
    gap = Gap(from_us=NEW.end_us or 0, to_us=us(9 * DAY + 60))
    written(ledger, OLD, pod("new", *NEW.segments, end_us=NEW.end_us, gap=gap))
    assert rolled(ledger, day=3) == 1

    assert [each.uid for each in reader.gaps(Window(3 * US_PER_DAY, ALL.end_us))] == ["new"]


def test_a_read_that_is_overtaken_counts_each_allocation_once(
    ledger: Ledger, reader: LedgerReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(ledger, OLD, NEW)
    before = by_day(reader, "state")
    kind: Any = type(reader)
    rows, seen = kind._rows, list[str]()

    def overtaken(self: object, sql: str, *more: object) -> object:
        if "rolled_periods" in sql and any("pod_segments" in each for each in seen) and seen[-1]:
            seen.append("")
            assert rolled(ledger, day=3) == 1
        elif seen[-1:] != [""]:
            seen.append(sql)
        return rows(self, sql, *more)

    monkeypatch.setattr(kind, "_rows", overtaken)
    assert by_day(reader, "state") == before
    assert before[1, (State.RUNNING.value,)] == DAY
    assert seen[-1] == ""


def test_usage_outside_any_allocation_has_one_row_for_each_gpu_and_day(ledger: Ledger, reader: LedgerReader) -> None:
    def hour(number: int, *, is_open: bool = False) -> UnallocatedHour:
        start_us = number * US_PER_HOUR
        found = GpuHour(start_us=start_us, unattributed=number, energy=1)
        return UnallocatedHour(key=GpuKey("e1", "GPU-0", start_us), node="n1", hour=found, open=is_open)

    hours = [hour(number) for number in (3, 23, 24, 47, 48, 71, 72)]
    ledger.write(reported(*hours, hour(50, is_open=True), at=9 * DAY))
    rolled(ledger, day=3)

    found = list(reader.unallocated_usage(Window(0, 9 * US_PER_DAY)))
    assert [(each.key.start_us // US_PER_HOUR, each.hour.unattributed, each.hour.energy) for each in found] == [
        *((0, 26, 2), (24, 71, 2)),
        *((48, 48, 1), (50, 50, 1), (71, 71, 1), (72, 72, 1)),
    ]
    with pytest.raises(DetailRolledUp):
        reader.unallocated_usage(Window(US_PER_HOUR, 9 * US_PER_DAY))


def test_closed_periods_that_divide_a_day_can_still_be_corrected(ledger: Ledger, reader: LedgerReader) -> None:
    """The second period ends in the middle of the third day."""
    written(ledger, OLD)
    lasting = pod("lasts", segment(DAY, None), end_us=None, end_by=None, gap=None)
    ledger.write(step(lasting, at=2 * DAY + 8))
    edges = [us(each) for each in (OPENED_S, DAY + 7200, 2 * DAY + 5, 4 * DAY)]
    ledger.write(step(at=9 * DAY))
    windows = [Window(*each) for each in pairwise(edges)]
    first, second = (close(ledger, reader, each) for each in windows[:2])
    assert rolled(ledger, day=3) == 1

    revised = pod("lasts", segment(DAY, DAY + 60), end_us=us(DAY + 60), gap=None, revision=2)
    ledger.write(step(revised, at=9 * DAY, live=None))
    third = close(ledger, reader, windows[2])

    assert [sum(line.gpu_time for line in each.lines) // GPU // US_PER_SECOND for each in (first, second)] == [
        2 * 7200,
        2 * (DAY - 7200 + 5),
    ]
    assert [(line.of, line.gpu_time // GPU // US_PER_SECOND) for line in third.lines] == [
        (3, 2),
        (2, -(DAY - 7200 + 5)),
        (1, 60 - 7200),
    ]
    assert reader.allocated(Window(us(OPENED_S), us(2 * DAY + 5)), ()) != []
    with pytest.raises(DetailRolledUp):
        reader.allocated(Window(us(OPENED_S), us(2 * DAY + 6)), ())

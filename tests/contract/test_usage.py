"""The contract of every ledger for usage measured by agents."""

import pytest
from msgspec.structs import replace

from gputally.accounting.changes import Changes
from gputally.accounting.totals.series import Series
from gputally.accounting.totals.total import Total
from gputally.model.units import GPU, US_PER_HOUR
from gputally.model.usage import (
    AgentPod,
    AssignmentHour,
    AssignmentKey,
    AssignmentRecord,
    GpuHour,
    GpuKey,
    Hour,
    UnallocatedHour,
)
from tests.contract.conftest import BackEnd
from tests.contract.records import pod, segment, step, us
from tests.contract.test_ledger import saved_by

ASSIGNMENT = AssignmentRecord(
    key=AssignmentKey("e1", "MIG-7", "ml", "pod-a", "main", us(1000)),
    node="n1",
    gpu="GPU-0",
    resource="nvidia.com/mig-1g.10gb",
    share=GPU // 7,
    seen_us=us(1020),
    after_us=None,
    until_us=None,
    ahead_us=-3,
)
HOUR = Hour(
    start_us=0,
    from_us=us(1000),
    to_us=us(1020),
    measured=20 * GPU,
    used=10 * GPU,
    burst=GPU,
    memory=80_000_000_000 * US_PER_HOUR,
    memory_us=us(20),
    energy=7,
)
ASSIGNMENT_HOUR = AssignmentHour(assignment=ASSIGNMENT, hour=HOUR)
UNALLOCATED_HOUR = UnallocatedHour(
    key=GpuKey("e1", "GPU-0", 0), node="n1", hour=GpuHour(start_us=0, unattributed=5, energy=6)
)
AGENT = AgentPod(uid="agent-1", node="n1", address="10.0.0.7", created_us=us(900))
AGENT_KEY = ("agent", AGENT.uid)


def reported(*rows: AssignmentHour | UnallocatedHour, at: int = 1000) -> Changes:
    """Usage rows as one set of changes, with a counter."""
    return step(
        at=at,
        assignment_usage={
            (row.assignment.key, row.hour.start_us): row for row in rows if isinstance(row, AssignmentHour)
        },
        unallocated_usage={row.key: row for row in rows if isinstance(row, UnallocatedHour)},
        series={(Total.MEASURED, ("a", "b", "c")): Series(us(1000), a=at)},
    )


def test_open_hours_are_loaded_as_they_were_written(back_end: BackEnd) -> None:
    saved = saved_by(back_end, reported(ASSIGNMENT_HOUR, UNALLOCATED_HOUR))

    assert (saved.assignment_usage, saved.unallocated_usage) == ((ASSIGNMENT_HOUR,), (UNALLOCATED_HOUR,))
    assert saved.series[Total.MEASURED, ("a", "b", "c")].a == 1000


@pytest.mark.parametrize("uid", [None, "", "uid-a"])
def test_an_assignment_may_have_an_undecided_pod_no_pod_or_a_pod(back_end: BackEnd, uid: str | None) -> None:
    row = replace(ASSIGNMENT_HOUR, assignment=replace(ASSIGNMENT, pod_uid=uid, until_us=us(1020), after_us=us(999)))

    assert saved_by(back_end, reported(row)).assignment_usage == (row,)


def test_a_repeated_hour_replaces_the_earlier_one(back_end: BackEnd) -> None:
    later = replace(ASSIGNMENT_HOUR, hour=replace(HOUR, to_us=us(1030), energy=9))
    warmer = replace(UNALLOCATED_HOUR, hour=replace(UNALLOCATED_HOUR.hour, energy=8))

    saved = saved_by(back_end, reported(ASSIGNMENT_HOUR, UNALLOCATED_HOUR), reported(later, warmer))

    assert (saved.assignment_usage, saved.unallocated_usage) == ((later,), (warmer,))


def test_all_hours_of_an_assignment_have_its_latest_state(back_end: BackEnd) -> None:
    ended = replace(ASSIGNMENT, seen_us=us(1030), until_us=us(1030), pod_uid="uid-a")
    rows = [
        replace(ASSIGNMENT_HOUR, assignment=ended),
        replace(ASSIGNMENT_HOUR, hour=replace(HOUR, start_us=US_PER_HOUR)),
    ]

    saved = saved_by(back_end, reported(*rows))

    assert [row.assignment for row in saved.assignment_usage] == [ended, ended]


def test_the_hours_of_an_assignment_are_sorted(back_end: BackEnd) -> None:
    hours = [replace(ASSIGNMENT_HOUR, hour=replace(HOUR, start_us=number * US_PER_HOUR)) for number in range(4)]

    assert saved_by(back_end, reported(*reversed(hours))).assignment_usage == tuple(hours)


def test_closed_hours_are_not_loaded(back_end: BackEnd) -> None:
    closed = reported(replace(ASSIGNMENT_HOUR, open=False), replace(UNALLOCATED_HOUR, open=False))

    saved = saved_by(back_end, reported(ASSIGNMENT_HOUR, UNALLOCATED_HOUR), closed)

    assert (saved.assignment_usage, saved.unallocated_usage) == ((), ())


def test_a_departed_pod_is_loaded_with_its_segments(back_end: BackEnd) -> None:
    record = pod("a", segment(1000, 1010), segment(1010, 1020, price=None))

    saved = saved_by(back_end, step(record, pods={"a": record}), step(record, pods={"a": None}, departed={"a": record}))

    assert (saved.pods, saved.departed) == ((), (record,))


def test_agents_and_departed_pods_are_stored_until_they_are_dropped(back_end: BackEnd) -> None:
    record = pod("a", segment(1000, 1010))
    there = step(record, departed={"a": record}, documents={AGENT_KEY: AGENT})
    gone = step(departed={"a": None}, documents={AGENT_KEY: None})

    assert saved_by(back_end, there).documents == {"agent": (AGENT,)}
    saved = saved_by(back_end, gone)
    assert (saved.departed, saved.documents) == ((), {})


def test_merged_changes_equal_separate_ones(back_end: BackEnd) -> None:
    record = pod("a", segment(1000, 1010))
    first = reported(ASSIGNMENT_HOUR, UNALLOCATED_HOUR).followed_by(
        step(record, departed={"a": record}, documents={AGENT_KEY: AGENT})
    )
    second = reported(replace(ASSIGNMENT_HOUR, hour=replace(HOUR, energy=9)), at=1100)

    saved = saved_by(back_end, first.followed_by(second))

    assert [row.hour.energy for row in saved.assignment_usage] == [9]
    assert (saved.unallocated_usage, saved.departed, saved.documents["agent"]) == (
        (UNALLOCATED_HOUR,),
        (record,),
        (AGENT,),
    )


def test_pending_usage_rows_count_towards_the_weight() -> None:
    record = pod("a", segment(1000, 1010))

    assert reported(ASSIGNMENT_HOUR, UNALLOCATED_HOUR).followed_by(step(departed={"a": record})).weight == 4

"""What every ledger does with what agents measured."""

import pytest
from msgspec.structs import replace

from gputally.accounting.changes import Changes
from gputally.accounting.totals.series import Series
from gputally.accounting.totals.totals import Total
from gputally.model.agent_pod import AgentPod
from gputally.model.measured.usage_record import (
    AssignmentHour,
    AssignmentKey,
    AssignmentRecord,
    GpuKey,
    UnallocatedHour,
)
from gputally.model.measured.usage_report import GpuHour, Hour
from gputally.model.units import GPU, US_PER_HOUR
from tests.contract.conftest import BackEnd
from tests.contract.records import pod, segment, step, us
from tests.contract.test_ledger import saved_by

HOLDER = AssignmentRecord(
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
HELD = AssignmentHour(assignment=HOLDER, hour=HOUR)
UNHELD = UnallocatedHour(key=GpuKey("e1", "GPU-0", 0), node="n1", hour=GpuHour(start_us=0, unattributed=5, energy=6))
AGENT = AgentPod(uid="agent-1", node="n1", address="10.0.0.7", created_us=us(900))
AGENT_KEY = ("agent", AGENT.uid)


def told(*rows: AssignmentHour | UnallocatedHour, at: int = 1000) -> Changes:
    """What agents told, in one step with a counter of it."""
    return step(
        at=at,
        assignment_usage={
            (row.assignment.key, row.hour.start_us): row for row in rows if isinstance(row, AssignmentHour)
        },
        unallocated_usage={row.key: row for row in rows if isinstance(row, UnallocatedHour)},
        series={(Total.MEASURED, ("a", "b", "c")): Series(us(1000), a=at)},
    )


def test_hours_that_agents_may_still_tell_of_come_back_as_they_were_written(back_end: BackEnd) -> None:
    saved = saved_by(back_end, told(HELD, UNHELD))

    assert (saved.assignment_usage, saved.unallocated_usage) == ((HELD,), (UNHELD,))
    assert saved.series[Total.MEASURED, ("a", "b", "c")].a == 1000


@pytest.mark.parametrize("uid", [None, "", "uid-a"])
def test_whose_it_is_may_be_undecided_nobody_or_a_pod(back_end: BackEnd, uid: str | None) -> None:
    row = replace(HELD, assignment=replace(HOLDER, pod_uid=uid, until_us=us(1020), after_us=us(999)))

    assert saved_by(back_end, told(row)).assignment_usage == (row,)


def test_an_hour_told_again_replaces_itself(back_end: BackEnd) -> None:
    later = replace(HELD, hour=replace(HOUR, to_us=us(1030), energy=9))
    warmer = replace(UNHELD, hour=replace(UNHELD.hour, energy=8))

    saved = saved_by(back_end, told(HELD, UNHELD), told(later, warmer))

    assert (saved.assignment_usage, saved.unallocated_usage) == ((later,), (warmer,))


def test_of_a_holder_the_last_that_is_known_counts_whichever_hour_tells_it(back_end: BackEnd) -> None:
    ended = replace(HOLDER, seen_us=us(1030), until_us=us(1030), pod_uid="uid-a")
    rows = [replace(HELD, assignment=ended), replace(HELD, hour=replace(HOUR, start_us=US_PER_HOUR))]

    saved = saved_by(back_end, told(*rows))

    assert [row.assignment for row in saved.assignment_usage] == [ended, ended]


def test_the_hours_of_a_holder_come_in_their_order(back_end: BackEnd) -> None:
    hours = [replace(HELD, hour=replace(HOUR, start_us=number * US_PER_HOUR)) for number in range(4)]

    assert saved_by(back_end, told(*reversed(hours))).assignment_usage == tuple(hours)


def test_what_no_agent_tells_any_more_is_not_taken_up_again(back_end: BackEnd) -> None:
    closed = told(replace(HELD, open=False), replace(UNHELD, open=False))

    saved = saved_by(back_end, told(HELD, UNHELD), closed)

    assert (saved.assignment_usage, saved.unallocated_usage) == ((), ())


def test_a_pod_that_left_comes_back_with_its_segments(back_end: BackEnd) -> None:
    record = pod("a", segment(1000, 1010), segment(1010, 1020, price=None))

    saved = saved_by(back_end, step(record, pods={"a": record}), step(record, pods={"a": None}, departed={"a": record}))

    assert (saved.pods, saved.departed) == ((), (record,))


def test_agents_and_pods_that_left_are_kept_until_they_are_dropped(back_end: BackEnd) -> None:
    record = pod("a", segment(1000, 1010))
    there = step(record, departed={"a": record}, documents={AGENT_KEY: AGENT})
    gone = step(departed={"a": None}, documents={AGENT_KEY: None})

    assert saved_by(back_end, there).documents == {"agent": (AGENT,)}
    saved = saved_by(back_end, gone)
    assert (saved.departed, saved.documents) == ((), {})


def test_steps_merged_into_one_say_the_same(back_end: BackEnd) -> None:
    record = pod("a", segment(1000, 1010))
    first = told(HELD, UNHELD).followed_by(step(record, departed={"a": record}, documents={AGENT_KEY: AGENT}))
    second = told(replace(HELD, hour=replace(HOUR, energy=9)), at=1100)

    saved = saved_by(back_end, first.followed_by(second))

    assert [row.hour.energy for row in saved.assignment_usage] == [9]
    assert (saved.unallocated_usage, saved.departed, saved.documents["agent"]) == ((UNHELD,), (record,), (AGENT,))


def test_rows_of_usage_that_wait_are_counted() -> None:
    record = pod("a", segment(1000, 1010))

    assert told(HELD, UNHELD).followed_by(step(departed={"a": record})).weight == 4

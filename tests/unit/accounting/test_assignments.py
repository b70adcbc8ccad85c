"""A kubelet knows pods by name: which of them a holder is follows from its time."""

import pytest
from msgspec.structs import replace

from gputally.accounting.usage.matching import allocation, narrowed, owner, span_of
from gputally.model.allocation import Gap
from gputally.model.pod_record import PodRecord
from gputally.model.usage import AssignmentKey, AssignmentRecord
from tests.contract.records import pod, segment


def named(uid: str, start: int, end: int | None) -> PodRecord:
    """The pod ml/db-0 with GPUs from `start` to `end`, in seconds."""
    return pod(uid, segment(start, end), name="db-0", gap=None)


def an_assignment(since: int, until: int | None = None, *, seen: int = 0, ahead: int = 0) -> AssignmentRecord:
    us = 1_000_000
    return AssignmentRecord(
        key=AssignmentKey("e1", "GPU-0", "ml", "db-0", "main", since * us),
        node="n1",
        gpu="GPU-0",
        resource="nvidia.com/gpu",
        share=us,
        seen_us=(seen or until or since) * us,
        after_us=None,
        until_us=None if until is None else until * us,
        ahead_us=ahead * us,
    )


def found(assignment: AssignmentRecord, *pods: PodRecord) -> str | None:
    record = owner(assignment, pods)
    return record.uid if record else None


OLD, NEW = named("old", 1000, 1100), named("new", 1120, None)


@pytest.mark.parametrize(
    ("assignment", "uid"),
    [
        (an_assignment(1003, 1099), "old"),
        (an_assignment(1125, seen=1200), "new"),
        (an_assignment(1125), "new"),
        (an_assignment(998, 1001), "old"),
        (an_assignment(1101, 1104), "old"),
        (an_assignment(1116, 1118), "new"),
        (an_assignment(1050, 1140), "old"),
        (an_assignment(1090, seen=1140), "new"),
        (an_assignment(900, 994), None),
        (an_assignment(1106, 1114), None),
    ],
)
@pytest.mark.parametrize("ahead", [0, 777, -777])
def test_a_holder_is_the_pod_of_its_name_that_had_gpus_for_most_of_its_time(
    assignment: AssignmentRecord, uid: str | None, ahead: int
) -> None:
    shift = ahead * 1_000_000
    by_its_clock = replace(
        assignment,
        key=assignment.key._replace(since_us=assignment.key.since_us + shift),
        seen_us=assignment.seen_us + shift,
        until_us=None if assignment.until_us is None else assignment.until_us + shift,
        ahead_us=shift,
    )

    assert found(by_its_clock, OLD, NEW) == found(by_its_clock, NEW, OLD) == uid


def test_pods_of_other_names_and_namespaces_do_not_count() -> None:
    strangers = (replace(NEW, name="db-1"), replace(NEW, namespace="other"))

    assert found(an_assignment(1125), *strangers) is None


def test_a_pod_that_never_held_anything_is_no_owner() -> None:
    assert found(an_assignment(1125), replace(NEW, segments=())) is None


def test_a_pod_may_have_held_its_devices_throughout_a_blind_interval() -> None:
    vanished = replace(OLD, gap=Gap(from_us=OLD.segments[0].end_us or 0, to_us=1_500_000_000))

    assert allocation(vanished) == (1_000_000_000, 1_500_000_000)
    assert found(an_assignment(1300, 1400), vanished) == "old"


def test_a_holder_seen_once_was_there_at_that_moment() -> None:
    assert span_of(an_assignment(1125, seen=1)) == (1_125_000_000, 1_125_000_000)


def gap(start: int, end: int) -> Gap:
    return Gap(from_us=start * 1_000_000, to_us=end * 1_000_000)


@pytest.mark.parametrize(
    ("assignments", "start", "end"),
    [
        ([], 100, 200),
        ([an_assignment(50, seen=90)], 100, 200),
        ([an_assignment(50, seen=150)], 150, 200),
        ([an_assignment(50, seen=250)], 200, 200),
        ([an_assignment(50, 160, seen=150)], 150, 160),
        ([an_assignment(50, 90, seen=80)], 100, 100),
        ([an_assignment(50, 160, seen=150), an_assignment(60, 180, seen=170)], 170, 180),
        ([an_assignment(50, 160, seen=150), an_assignment(60, seen=170)], 170, 200),
        ([an_assignment(1050, 1160, seen=1150, ahead=1000)], 150, 160),
    ],
)
def test_a_blind_interval_is_narrowed_to_what_the_holders_allow(
    assignments: list[AssignmentRecord], start: int, end: int
) -> None:
    assert narrowed(gap(100, 200), assignments) == gap(start, end)

"""Shares of a part never exceed it, and its use goes to those who hold it, or to nobody."""

import pytest

from gputally.metering.attribution import Division, divided, division, memory, shares
from gputally.model.devices import PartAllocation, Process
from tests.unit.metering.readings import held, process

A, B = held("a", pod_uid="ua"), held("b", pod_uid="ub")


def replicas(pod: str, count: int, in_all: int) -> PartAllocation:
    return held(pod, replicas=count, replicas_in_all=in_all, pod_uid=f"u{pod}")


@pytest.mark.parametrize(
    ("assignments", "expected"),
    [
        ([], ()),
        ([A], (142_857,)),
        ([A, B], (71_429, 71_428)),
        ([A, B, held("c")], (47_619, 47_619, 47_619)),
        ([replicas("a", 1, 4)], (35_714,)),
        ([replicas("a", 1, 4), replicas("b", 3, 4)], (35_714, 107_142)),
        ([replicas("a", 4, 4), replicas("b", 4, 4)], (71_429, 71_428)),
        ([replicas("a", 9, 4)], (142_856,)),
        ([replicas("a", 1, 0)], (142_857,)),
        ([held("a", unit=100_000)], (100_000,)),
        ([held("a", unit=30_000, replicas=2, replicas_in_all=4)], (60_000,)),
        ([held("a", unit=1_000_000)], (142_857,)),
        ([replicas("a", -1, 2)], (0,)),
        ([A, replicas("b", 1, 3)], (107_143, 35_714)),
        ([held("a", container="1"), held("a", container="2"), B], (35_715, 35_714, 71_428)),
        ([held("a", container="1"), held("a", container="2")], (71_429, 71_428)),
    ],
)
def test_shares_are_the_weight_the_replicas_or_an_equal_part_and_never_more_than_the_part(
    assignments: list[PartAllocation], expected: tuple[int, ...]
) -> None:
    assert shares(142_857, assignments) == expected


def test_a_part_too_light_to_be_divided_is_used_in_equal_parts() -> None:
    assignments = [replicas("a", 1, 3), replicas("b", 1, 3)]

    assert shares(1, assignments) == (0, 0)
    assert division(assignments, (0, 0), None) == Division((1, 1), 0)


@pytest.mark.parametrize(
    ("assignments", "processes", "expected"),
    [
        pytest.param([], [process("ua", 5)], Division((), 1), id="nobody holds it"),
        pytest.param([A], None, Division((600,), 0), id="no processes known"),
        pytest.param([A], [process("ua"), process("ux")], Division((600,), 0), id="none known to be busy"),
        pytest.param([A], [process("ua", 30), process("", 10)], Division((30,), 10), id="one of no pod"),
        pytest.param([A], [process("ua", 30), process("ub", 20)], Division((30,), 20), id="one of another pod"),
        pytest.param([A], [process("ub", 20)], Division((0,), 20), id="only another pod"),
        pytest.param([A], [process("ua", 30), process(None)], Division((600,), 0), id="one that cannot be seen"),
        pytest.param([held("a")], [process("ux", 3), process("", 1)], Division((3,), 1), id="a pod without UID"),
        pytest.param([A, B], [process("ua", 1), process("ub", 2)], Division((1, 2), 0), id="two, each its own"),
        pytest.param([A, B], [process("ua", 1), process("", 2)], Division((1, 0), 2), id="two, and no pod"),
        pytest.param([A, held("b")], [process("ua", 1)], Division((600, 400), 0), id="two, one without UID"),
        pytest.param([A, B], [process("ua", 0)], Division((600, 400), 0), id="two, nobody busy"),
        pytest.param(
            [held("a", container="1", pod_uid="ua"), held("a", container="2", pod_uid="ua")],
            [process("ua", 10), process("ux", 5)],
            Division((6, 4), 5),
            id="two containers of one pod",
        ),
    ],
)
def test_use_is_divided_by_what_processes_did_or_else_by_shares(
    assignments: list[PartAllocation], processes: list[Process] | None, expected: Division
) -> None:
    held_shares = (600, 400)[: len(assignments)]

    assert division(assignments, held_shares, processes) == expected


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (Division((1,), 0), ([10], 0)),
        (Division((), 1), ([], 10)),
        (Division((1, 1), 1), ([4, 3], 3)),
        (Division((2, 0), 1), ([7, 0], 3)),
    ],
)
def test_what_is_divided_adds_up_and_the_first_of_equals_has_what_is_left(
    by: Division, expected: tuple[list[int], int]
) -> None:
    assignments, nobody = divided(10, by)

    assert ([*assignments], nobody) == expected


@pytest.mark.parametrize(
    ("assignments", "processes", "used", "expected"),
    [
        pytest.param([A], None, 90, [90], id="of the only one, all that is used"),
        pytest.param([A], None, None, None, id="unknown"),
        pytest.param([A, B], None, 90, [54, 36], id="by shares"),
        pytest.param([A, B], [process("ua", memory=7), process("ux", memory=3)], 90, [7, 0], id="by processes"),
        pytest.param([A, B], [process("ua", memory=7), process("ub")], 90, [54, 36], id="one of unknown memory"),
        pytest.param([A, B], [process("ua", memory=7), process(None, memory=1)], 90, [54, 36], id="one not seen"),
        pytest.param([A], [], 0, [0], id="no process"),
        pytest.param([A, B], [], 90, [54, 36], id="processes are not shown"),
        pytest.param([], None, 90, None, id="nobody holds it"),
    ],
)
def test_memory_is_that_of_the_pods_processes_or_else_divided_by_shares(
    assignments: list[PartAllocation], processes: list[Process] | None, used: int | None, expected: list[int] | None
) -> None:
    found = memory(assignments, (600, 400)[: len(assignments)], processes, used)

    assert (None if found is None else [*found]) == expected

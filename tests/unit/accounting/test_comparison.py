"""What only one side says is allocated, once both have had time to notice."""

import pytest
from msgspec.structs import replace

from gputally.accounting.usage.matching import Difference, difference
from gputally.model.pod_record import PodRecord
from gputally.model.units import GPU
from gputally.model.usage import AssignmentKey, AssignmentRecord
from tests.contract.records import pod, segment, us

TOLD_S = 1000


def assignment(
    uid: str | None, *, since: int = 900, until: int | None = None, device: str = "GPU-0"
) -> AssignmentRecord:
    return AssignmentRecord(
        key=AssignmentKey("e1", device, "ml", "some", "main", us(since + 50)),
        node="n1",
        gpu=device,
        resource="nvidia.com/gpu",
        share=GPU,
        seen_us=us(990),
        after_us=None,
        until_us=None if until is None else us(until),
        ahead_us=us(50),
        pod_uid=uid,
    )


def a_pod(uid: str, *, since: int = 900, until: int | None = None) -> PodRecord:
    """With two GPUs."""
    return pod(uid, segment(since, until, quantity=2 * GPU), scheduled_us=us(since))


def compared(pods: list[PodRecord], assignments: list[AssignmentRecord]) -> tuple[int, int]:
    """GPUs that the API alone, and a kubelet alone, knows."""
    known = {each.uid: each for each in pods}
    found = difference(known, assignments, pool="p", reported_us=us(TOLD_S), at_us=7)
    assert found == Difference(pool="p", at_us=7, api_only=found.api_only, device_only=found.device_only)
    return found.api_only // GPU, found.device_only // GPU


def test_both_sides_agree_on_a_pod_that_both_know_whatever_its_share() -> None:
    assert compared([a_pod("a")], [assignment("a")]) == (0, 0)


def test_a_pod_of_which_the_kubelet_lists_nothing() -> None:
    assert compared([a_pod("a"), a_pod("b")], [assignment("b")]) == (2, 0)


@pytest.mark.parametrize("uid", ["", "gone"])
def test_a_device_held_by_nobody_the_api_tells_of(uid: str) -> None:
    assert compared([], [assignment(uid), assignment(uid, device="GPU-1")]) == (0, 2)


def test_a_device_held_by_a_pod_that_has_ended() -> None:
    assert compared([a_pod("a", until=950)], [assignment("a")]) == (0, 1)


def test_what_has_just_begun_or_ended_is_no_difference() -> None:
    young = [a_pod("a", since=TOLD_S - 14), a_pod("b", until=TOLD_S - 14), replace(a_pod("c"), scheduled_us=None)]

    assert compared(young, [assignment("b", device="GPU-1"), assignment("", since=TOLD_S - 14)]) == (0, 0)


def test_a_device_that_was_given_back_is_not_held() -> None:
    assert compared([a_pod("a")], [assignment("a", until=950)]) == (2, 0)


def test_who_holds_a_device_must_be_decided_before_it_counts() -> None:
    assert compared([], [assignment(None)]) == (0, 0)

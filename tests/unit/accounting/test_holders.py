"""A kubelet knows pods by name: which of them a holder is follows from its time."""

import pytest
from msgspec.structs import replace

from gputally.accounting.usage.holders import allocation, narrowed, owner, span_of
from gputally.model.allocation import Blind
from gputally.model.measured.usage_record import Holder, HolderKey
from gputally.model.pod import PodRecord
from tests.contract.records import pod, segment


def named(uid: str, start: int, end: int | None) -> PodRecord:
    """The pod ml/db-0 with GPUs from `start` to `end`, in seconds."""
    return pod(uid, segment(start, end), name="db-0", blind=None)


def a_holder(since: int, until: int | None = None, *, seen: int = 0, ahead: int = 0) -> Holder:
    us = 1_000_000
    return Holder(
        key=HolderKey("e1", "GPU-0", "ml", "db-0", "main", since * us),
        node="n1",
        gpu="GPU-0",
        resource="nvidia.com/gpu",
        share=us,
        seen_us=(seen or until or since) * us,
        after_us=None,
        until_us=None if until is None else until * us,
        ahead_us=ahead * us,
    )


def found(holder: Holder, *pods: PodRecord) -> str | None:
    record = owner(holder, pods)
    return record.uid if record else None


OLD, NEW = named("old", 1000, 1100), named("new", 1120, None)


@pytest.mark.parametrize(
    ("holder", "uid"),
    [
        (a_holder(1003, 1099), "old"),
        (a_holder(1125, seen=1200), "new"),
        (a_holder(1125), "new"),
        (a_holder(998, 1001), "old"),
        (a_holder(1101, 1104), "old"),
        (a_holder(1116, 1118), "new"),
        (a_holder(1050, 1140), "old"),
        (a_holder(1090, seen=1140), "new"),
        (a_holder(900, 994), None),
        (a_holder(1106, 1114), None),
    ],
)
@pytest.mark.parametrize("ahead", [0, 777, -777])
def test_a_holder_is_the_pod_of_its_name_that_had_gpus_for_most_of_its_time(
    holder: Holder, uid: str | None, ahead: int
) -> None:
    shift = ahead * 1_000_000
    by_its_clock = replace(
        holder,
        key=holder.key._replace(since_us=holder.key.since_us + shift),
        seen_us=holder.seen_us + shift,
        until_us=None if holder.until_us is None else holder.until_us + shift,
        ahead_us=shift,
    )

    assert found(by_its_clock, OLD, NEW) == found(by_its_clock, NEW, OLD) == uid


def test_pods_of_other_names_and_namespaces_do_not_count() -> None:
    strangers = (replace(NEW, name="db-1"), replace(NEW, namespace="other"))

    assert found(a_holder(1125), *strangers) is None


def test_a_pod_that_never_held_anything_is_no_owner() -> None:
    assert found(a_holder(1125), replace(NEW, segments=())) is None


def test_a_pod_may_have_held_its_devices_throughout_a_blind_interval() -> None:
    vanished = replace(OLD, blind=Blind(from_us=OLD.segments[0].end_us or 0, to_us=1_500_000_000))

    assert allocation(vanished) == (1_000_000_000, 1_500_000_000)
    assert found(a_holder(1300, 1400), vanished) == "old"


def test_a_holder_seen_once_was_there_at_that_moment() -> None:
    assert span_of(a_holder(1125, seen=1)) == (1_125_000_000, 1_125_000_000)


def blind(start: int, end: int) -> Blind:
    return Blind(from_us=start * 1_000_000, to_us=end * 1_000_000)


@pytest.mark.parametrize(
    ("holders", "start", "end"),
    [
        ([], 100, 200),
        ([a_holder(50, seen=90)], 100, 200),
        ([a_holder(50, seen=150)], 150, 200),
        ([a_holder(50, seen=250)], 200, 200),
        ([a_holder(50, 160, seen=150)], 150, 160),
        ([a_holder(50, 90, seen=80)], 100, 100),
        ([a_holder(50, 160, seen=150), a_holder(60, 180, seen=170)], 170, 180),
        ([a_holder(50, 160, seen=150), a_holder(60, seen=170)], 170, 200),
        ([a_holder(1050, 1160, seen=1150, ahead=1000)], 150, 160),
    ],
)
def test_a_blind_interval_is_narrowed_to_what_the_holders_allow(holders: list[Holder], start: int, end: int) -> None:
    assert narrowed(blind(100, 200), holders) == blind(start, end)

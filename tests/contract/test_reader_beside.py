"""The contract of every ledger reader for usage, capacity, preemptions and observation gaps."""

from typing import Any

import pytest
from msgspec.structs import replace

from gputally.accounting.changes import Changes
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import CapacityRecord, GapSubject, ObservationGap, PriorityClassRecord, WaitRecord, Window
from gputally.model.allocation import Gap
from gputally.model.disruptions import PREEMPTIONS, Cause, Preemption, Preemptor, Victim, VictimRecord
from gputally.model.kube.kinds import Kind
from gputally.model.node_record import NodeRecord
from gputally.model.units import GPU, GPU_SECOND, US_PER_HOUR, US_PER_SECOND
from gputally.model.verdicts import Reason
from gputally.model.waits import PendingSegmentRow
from tests.contract.records import (
    ACCOUNTED_S,
    ALWAYS,
    ASSET,
    BY,
    CLASS_VERSION,
    DISRUPTION,
    FACTS,
    LOST_WORK,
    NODE,
    OPENED_S,
    PREEMPTION,
    PRICE,
    WAIT,
    pod,
    recorded,
    segment,
    step,
    us,
)
from tests.contract.test_usage import ASSIGNMENT_HOUR, HOUR, UNALLOCATED_HOUR, reported


def test_usage_has_the_hours_that_start_in_the_window(ledger: Ledger, reader: LedgerReader) -> None:
    hours = [replace(ASSIGNMENT_HOUR, hour=replace(HOUR, start_us=number * US_PER_HOUR)) for number in range(4)]
    unallocated = [
        replace(UNALLOCATED_HOUR, key=UNALLOCATED_HOUR.key._replace(start_us=each.hour.start_us), open=False)
        for each in hours
    ]
    unallocated = [replace(each, hour=replace(each.hour, start_us=each.key.start_us)) for each in unallocated]
    ledger.write(reported(*hours, *unallocated))

    assert list(reader.usage(Window(US_PER_HOUR, 3 * US_PER_HOUR))) == hours[1:3]
    assert list(reader.unallocated_usage(Window(US_PER_HOUR, 3 * US_PER_HOUR))) == unallocated[1:3]
    assert list(reader.usage(Window(1, US_PER_HOUR))) == []


def window(start: int, end: int) -> Window:
    return Window(us(start), us(end))


def capacity(start: int, end: int, physical: int = 8, *, uid: str = "node-1") -> CapacityRecord:
    return CapacityRecord(
        node_uid=uid,
        node="n1",
        start_us=us(start),
        end_us=us(end),
        physical=physical * GPU,
        covered=8 * GPU,
        allocatable=7 * GPU,
        divided=False,
        ready=True,
        cordoned=False,
        asset=ASSET,
        price=PRICE,
        continues="",
    )


def facts(
    *changes: tuple[int, int], gone: int | None = None, gone_by: int | None = None, uid: str = "node-1"
) -> Changes:
    """A node whose whole GPUs change at these times."""
    history = tuple((us(at), replace(FACTS, physical=physical * GPU)) for at, physical in changes)
    gone_us, by_us = (None if at is None else us(at) for at in (gone, gone_by))
    record = NodeRecord(uid=uid, name="n1", created_us=history[0][0], facts=history, gone_us=gone_us, gone_by_us=by_us)
    return step(
        nodes={uid: record},
        capacity={(uid, at_us): ("n1", each) for at_us, each in history},
        asset_prices={(ASSET, us(OPENED_S)): PRICE},
    )


def test_capacity_lasts_until_it_changes_or_the_node_is_deleted(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(facts((900, 8), (1100, 4), gone=1500))
    ledger.write(facts((1500, 2), uid="node-2"))

    assert list(reader.capacity(window(1000, 6000))) == [
        capacity(1000, 1100),
        capacity(1100, 1500, 4),
        capacity(1500, ACCOUNTED_S, 2, uid="node-2"),
    ]
    assert list(reader.capacity(window(1200, 1300))) == [capacity(1200, 1300, 4)]
    assert list(reader.capacity(window(0, 900))) == []


@pytest.mark.parametrize(
    ("ended", "until"),
    [
        ({"a": 1450}, 1500),
        ({"a": 1520}, 1520),
        ({"a": 1520, "b": 1540}, 1540),
        ({"a": 1700}, 1600),
        ({"a": None}, 1600),
    ],
)
@pytest.mark.parametrize("pods", [1, 5000])
def test_capacity_of_a_node_deleted_in_a_gap_lasts_as_long_as_its_pods(
    ledger: Ledger,
    reader: LedgerReader,
    ended: dict[str, int | None],
    until: int,
    pods: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(type(reader), "page_pods", pods, raising=False)
    ledger.write(facts((900, 8), gone=1500, gone_by=1600))
    elsewhere = pod("c", segment(1000, 1590), node="n2", node_uid="node-2")
    namesake = pod("d", segment(1000, 1580), node_uid="node-0")
    ledger.write(step(elsewhere, namesake, *(pod(uid, segment(1000, end)) for uid, end in ended.items())))

    assert list(reader.capacity(window(1000, 6000))) == [capacity(1000, until)]
    assert list(reader.capacity(window(1000, 1200))) == [capacity(1000, 1200)]


def test_a_preemption_is_returned_once_as_last_counted(ledger: Ledger, reader: LedgerReader) -> None:
    late = replace(PREEMPTION, released_us=us(1200))
    for at, each in ((1000, PREEMPTION), (1300, late)):
        ledger.write(step(at=at, victims={each.victim_uid: each}))
    unknown = replace(PREEMPTION, victim_uid="c", by=replace(BY, preemptor=None, preemptor_tier="unknown"))
    ledger.write(step(at=1400, victims={"c": unknown}))

    first, second = reader.preemptions(Window(7, 8))

    assert first == as_recorded(late)
    assert first.by
    assert first.by.is_permitted is None
    assert second.by == Preemption(preemptor_tier="unknown")
    assert list(reader.preemptions(Window(8, 9))) == list(reader.disruptions(Window(0, 9))) == []


def as_recorded(victim: Victim) -> VictimRecord:
    """What the ledger has of it."""
    values = {name: getattr(victim, name) for name in VictimRecord.__struct_fields__}
    return VictimRecord(**values | {"by": recorded(victim.by) if victim.by else None})


@pytest.mark.parametrize(
    "known",
    [
        {"priority": 10, "class_name": "top", "may_preempt": False, "is_inferred": True},
        {"priority": -(10**9)},
        {"kind": "Job", "quantity": 3 * GPU},
        {"kind": "Job", "quantity": None},
        {"kind": "PodGroup", "uid": "", "quantity": None, "priority": 0},
    ],
)
def test_of_a_preemptor_all_is_returned_that_is_known(
    ledger: Ledger, reader: LedgerReader, known: dict[str, Any]
) -> None:
    assert BY.preemptor
    by = replace(BY, preemptor=replace(BY.preemptor, **known), victim_priority=9, victim_class="low")
    ledger.write(step(at=1000, victims={"a": replace(DISRUPTION, cause=Cause.PREEMPTION, by=by)}))

    [preempted], [disrupted] = reader.preemptions(Window(7, 8)), reader.disruptions(Window(7, 8))
    assert preempted == disrupted
    assert preempted.by == recorded(by)


def test_a_preemptor_that_is_only_named_has_no_tier_of_its_own(ledger: Ledger, reader: LedgerReader) -> None:
    named = Preemptor(uid="b", namespace="ml", name="by")
    by = replace(BY, preemptor=named, preemptor_tier="unknown")
    ledger.write(step(at=1000, victims={"a": replace(PREEMPTION, by=by)}))

    [found] = reader.preemptions(Window(7, 8))
    assert found.by
    assert (found.by.preemptor, found.by.preemptor_tier) == (named, "unknown")


def test_a_disruption_is_a_preemption_once_that_is_counted(ledger: Ledger, reader: LedgerReader) -> None:
    preempted = replace(DISRUPTION, cause=Cause.PREEMPTION, by=replace(BY, preemptor_tier=""))
    ledger.write(step(at=1000, victims={"a": preempted}))
    assert [each.by for each in reader.disruptions(Window(7, 8))] == [None]
    assert list(reader.preemptions(Window(7, 8))) == []

    ledger.write(step(at=1100, victims={"a": replace(preempted, by=BY)}))
    assert list(reader.preemptions(Window(7, 8))) == list(reader.disruptions(Window(7, 8)))


def test_a_disruption_is_returned_as_last_known_and_not_once_it_was_withdrawn(
    ledger: Ledger, reader: LedgerReader
) -> None:
    late = replace(DISRUPTION, cause=Cause.SPOT_RECLAIM, is_certain=False, replaced_us=us(1200), replacement_uid="b")
    late = replace(late, budget_violated=True)
    ledger.write(step(at=1000, victims={"a": DISRUPTION, "c": replace(DISRUPTION, victim_uid="c", decided_us=9)}))
    ledger.write(step(at=1300, victims={"a": late, "c": None}))

    assert list(reader.disruptions(Window(7, 10))) == [as_recorded(late)]
    assert list(reader.disruptions(Window(8, 10))) == []


def test_disruptions_and_their_losses_are_listed_by_cause_and_job(ledger: Ledger, reader: LedgerReader) -> None:
    causes = {"a": Cause.PREEMPTION, "b": Cause.CONTAINER_RESTART, "c": Cause.EVICTION}
    found = {uid: replace(DISRUPTION, victim_uid=uid, cause=cause) for uid, cause in causes.items()}
    found |= {
        "job": replace(found["a"], victim_uid="job", job="other"),
        "namespace": replace(found["a"], victim_uid="namespace", victim_namespace="web"),
    }
    pods = {uid: (replace(LOST_WORK.pods[0], uid=uid),) for uid in found}
    lost = {uid: replace(LOST_WORK, victim_uid=uid, pods=pods[uid]) for uid in found}
    ledger.write(step(at=1000, victims=found, lost_work=lost))

    def listed(**of: Any) -> list[str]:  # noqa: ANN401 - any filter
        return [each.victim_uid for each in reader.disruptions(ALWAYS, **of)]

    assert listed() == sorted(found)
    assert listed(causes=PREEMPTIONS) == ["a", "job", "namespace"]
    assert listed(causes={Cause.CONTAINER_RESTART}) == ["b"]
    assert listed(of_job=("ml", "train")) == ["a", "b", "c"]
    assert listed(causes=PREEMPTIONS, of_job=("ml", "train")) == ["a"]
    assert reader.lost_work(ALWAYS) == lost
    assert reader.lost_work(ALWAYS, causes={Cause.EVICTION}) == {"c": lost["c"]}


def test_a_disruption_may_have_violated_a_budget_or_not_or_nobody_knows(ledger: Ledger, reader: LedgerReader) -> None:
    for known in (True, False, None):
        ledger.write(step(at=1000, victims={"a": replace(DISRUPTION, budget_violated=known)}))

        assert [each.budget_violated for each in reader.disruptions(Window(7, 8))] == [known]


def test_versions_of_priority_classes_in_a_window_are_returned_whole(ledger: Ledger, reader: LedgerReader) -> None:
    ended, new = replace(CLASS_VERSION, to_us=20), replace(CLASS_VERSION, from_us=20, value=500)
    ledger.write(step(at=1000, priority_classes={("low", 7): CLASS_VERSION}))
    ledger.write(step(at=1300, priority_classes={("low", 7): ended, ("low", 20): new}))

    names = PriorityClassRecord.__struct_fields__
    first, second = (PriorityClassRecord(**{name: getattr(each, name) for name in names}) for each in (ended, new))
    assert reader.priority_classes(Window(0, 100)) == [first, second]
    assert reader.priority_classes(Window(8, 20)) == [first]
    assert reader.priority_classes(Window(20, 21)) == [second]
    assert reader.priority_classes(Window(0, 7)) == []


def test_waits_are_returned_as_last_charged_and_not_once_they_were_withdrawn(
    ledger: Ledger, reader: LedgerReader
) -> None:
    first = PendingSegmentRow(uid="a", namespace="ml", name="pod-a", wait=WAIT)
    ended = replace(first, wait=replace(WAIT, to_us=20))
    second = replace(first, wait=replace(WAIT, from_us=20, occupant=None, price=None, reason=Reason.SCHEDULABLE))
    ledger.write(step(at=1000, waits={("a", 7): first, ("b", 7): replace(first, uid="b")}))
    ledger.write(step(at=1300, waits={("a", 7): ended, ("a", 20): second, ("b", 7): None}))

    expected = [_recorded(ended), _recorded(second)]
    assert list(reader.waits(Window(0, 30))) == expected
    assert list(reader.waits(Window(0, 30), pod_uid="a")) == expected
    assert list(reader.waits(Window(0, 30), pod_uid="b")) == []
    assert list(reader.waits(Window(20, 30))) == expected[1:]
    assert list(reader.waits(Window(0, 20))) == expected[:1]


def _recorded(row: PendingSegmentRow) -> WaitRecord:
    wait, (tier, tenant) = row.wait, row.wait.occupant or ("", "")
    return WaitRecord(
        pod_uid=row.uid,
        namespace=row.namespace,
        name=row.name,
        occupying_tier=tier,
        occupying_tenant=tenant,
        price_key=wait.price.key if wait.price else None,
        **{name: getattr(wait, name) for name in ("from_us", "to_us", "tier", "tenant", "quantity", "reason", "cause")},
    )


def test_lost_work_is_returned_as_last_corrected_however_large(ledger: Ledger, reader: LedgerReader) -> None:
    first = replace(LOST_WORK, gpu_time=1, is_final=False)
    ledger.write(step(at=1000, victims={"a": DISRUPTION}, lost_work={"a": first}))
    ledger.write(step(at=1300, lost_work={"a": LOST_WORK}))

    assert reader.lost_work(Window(7, 8)) == {"a": LOST_WORK}
    assert reader.lost_work(Window(8, 9)) == {}


def test_gaps_cover_watches_allocations_and_nodes(ledger: Ledger, reader: LedgerReader) -> None:
    gone = replace(NODE, gone_us=us(1200), gone_by_us=us(1260))
    ledger.write(
        step(
            pod("a", segment(1, 2), gap=Gap(from_us=us(1100), to_us=us(1150))),
            interruptions={(Kind.PODS, us(1090)): us(1160)},
            nodes={NODE.uid: gone},
        )
    )

    assert [tuple_of(each) for each in reader.gaps(window(1000, 1250))] == [
        (GapSubject.WATCH, "", "pods", 1090, 1160),
        (GapSubject.ALLOCATION, "a", "ml/pod-a", 1100, 1150),
        (GapSubject.NODE, "node-1", "n1", 1200, 1250),
    ]
    assert [tuple_of(each)[3:] for each in reader.gaps(window(1120, 1140))] == [(1120, 1140)] * 2


def test_a_gap_closed_by_a_later_revision_is_not_returned(ledger: Ledger, reader: LedgerReader) -> None:
    gap = Gap(from_us=us(1100), to_us=us(1150))
    ledger.write(step(pod("a", segment(1, 2), gap=gap)))
    ledger.write(step(pod("a", segment(1, 2), gap=None, revision=2)))

    assert list(reader.gaps(ALWAYS)) == []


@pytest.mark.parametrize("pods", [1, 100])
def test_what_ended_in_a_gap_has_its_time_and_what_may_be_missing(
    ledger: Ledger, reader: LedgerReader, monkeypatch: pytest.MonkeyPatch, pods: int
) -> None:
    monkeypatch.setattr(type(reader), "page_pods", pods, raising=False)
    gap = Gap(from_us=us(1100), to_us=us(1150))
    parts = segment(1000, 1060), segment(1060, 1100, quantity=2 * GPU)
    ledger.write(step(pod("a", *parts, gap=gap), pod("b", *parts, gap=None), pod("c", *parts, gap=gap)))
    ledger.write(step(pod("c", *parts, gap=None, revision=2)))

    def found(start: int, end: int) -> list[tuple[str, int, int, int]]:
        return [
            (each.record.pod_uid, each.gpu_time // GPU_SECOND, each.most // GPU_SECOND, each.gap_us // US_PER_SECOND)
            for each in reader.ended_in_gaps(window(start, end))
        ]

    assert found(900, 2000) == [("a", 60, 0, 50), ("a", 80, 100, 50)]
    assert found(1050, 1120) == [("a", 10, 0, 50), ("a", 80, 40, 50)]
    assert found(1110, 1300) == [("a", 0, 0, 50), ("a", 0, 80, 50)]
    assert found(900, 1100) == found(1150, 1300) == []
    assert [each.end_us for each in reader.ended_in_gaps(window(900, 2000))] == [us(1060), us(1100)]


def tuple_of(gap: ObservationGap) -> tuple[GapSubject, str, str, int, int]:
    return gap.subject, gap.uid, gap.name, gap.start_us // US_PER_SECOND, gap.end_us // US_PER_SECOND

"""What `gputally why` finds about pods that are gone, on all back-ends."""

from msgspec.structs import replace

from gputally.answers.past_pods import last_pod, last_victims, pods_from_us
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.model.disruptions import Cause
from gputally.model.units import US_PER_DAY
from gputally.model.waits import PendingSegmentRow
from tests.contract.records import ALWAYS, BY, DISRUPTION, OPENED_S, PREEMPTION, WAIT, pod, recorded, segment, step, us


def row(uid: str, *, from_us: int, to_us: int, name: str = "train") -> PendingSegmentRow:
    return PendingSegmentRow(uid=uid, namespace="ml", name=name, wait=replace(WAIT, from_us=from_us, to_us=to_us))


def rows(*found: PendingSegmentRow) -> dict[tuple[str, int], PendingSegmentRow | None]:
    return {(each.uid, each.wait.from_us): each for each in found}


def test_waits_are_found_by_the_name_of_their_pods(ledger: Ledger, reader: LedgerReader) -> None:
    waits = rows(row("a", from_us=5, to_us=6), row("b", from_us=7, to_us=9), row("c", from_us=7, to_us=9, name="x"))
    ledger.write(step(at=1000, waits=waits))

    assert [each.pod_uid for each in reader.waits(ALWAYS, named=("ml", "train"))] == ["a", "b"]
    assert list(reader.waits(ALWAYS, named=("other", "train"))) == []


def test_the_last_pod_of_a_name_has_its_own_waits_and_preemption(ledger: Ledger, reader: LedgerReader) -> None:
    waits = rows(row("a", from_us=5, to_us=6), row("b", from_us=7, to_us=9), row("b", from_us=9, to_us=12))
    preemption = replace(PREEMPTION, victim_uid="b", victim_name="train", decided_us=20)
    ledger.write(step(pod("b", segment(1000, 1400)), at=1500, waits=waits, victims={"b": preemption}))

    found = last_pod(reader, "ml", "train")
    assert found
    assert (found.uid, found.tier, found.tenant, [each.from_us for each in found.waits]) == ("b", "low", "red", [7, 9])
    assert found.allocation
    assert found.preempted
    assert found.preempted.by == recorded(BY)


def test_a_pod_that_was_bound_at_once_is_found_by_its_allocation(ledger: Ledger, reader: LedgerReader) -> None:
    waits = rows(row("a", from_us=5, to_us=6))
    ledger.write(step(pod("b", segment(1000, 1400), segment(1400, 1450)), at=1500, waits=waits))

    found = last_pod(reader, "ml", "pod-b")
    assert found
    assert (found.uid, found.tier, found.tenant, found.waits) == ("b", "a tier of its own", "red", [])
    assert found.quantity == segment(1000, 1400).quantity
    assert found.allocation == reader.allocation("b")
    assert last_pod(reader, "other", "pod-b") is None


def test_of_two_pods_of_one_name_the_later_one_is_found(ledger: Ledger, reader: LedgerReader) -> None:
    held = pod("b", segment(1000, 1400))
    ledger.write(step(held, at=1500, waits=rows(row("a", from_us=5, to_us=6, name="pod-b"))))

    found = last_pod(reader, "ml", "pod-b")
    assert found
    assert (found.uid, found.waits) == ("b", [])

    ledger.write(step(at=1600, waits=rows(row("c", from_us=us(1410), to_us=us(1550), name="pod-b"))))
    found = last_pod(reader, "ml", "pod-b")
    assert found
    assert (found.uid, found.allocation) == ("c", None)


def test_a_victim_that_never_waited_is_found_by_its_preemption(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(at=1000, victims={"a": PREEMPTION}))

    found = last_pod(reader, "ml", "pod-a")
    assert found
    assert (found.uid, found.waits, found.quantity) == ("a", (), PREEMPTION.quantity)
    assert last_pod(reader, "ml", "pod-b") is None, "the preemptor is not the victim"


def test_the_preempted_pods_of_a_job_are_those_of_the_last_30_days(ledger: Ledger, reader: LedgerReader) -> None:
    later_s = OPENED_S + 40 * 86_400
    preempted = replace(DISRUPTION, cause=Cause.PREEMPTION)
    found = {
        "old": replace(preempted, victim_uid="old", decided_us=us(OPENED_S + 5)),
        "a": replace(preempted, victim_uid="a", decided_us=us(later_s - 60), by=BY),
        "b": replace(preempted, victim_uid="b", decided_us=us(later_s - 50), job="other"),
        "c": replace(DISRUPTION, victim_uid="c", decided_us=us(later_s - 40)),
    }
    ledger.write(step(at=later_s, victims=found))

    known = last_victims(reader, "ml", "train")
    assert [(each.victim_uid, each.by) for each in known.victims] == [("a", recorded(BY))]
    assert known.from_us == us(later_s - 30 * 86_400)
    assert last_victims(reader, "ml", "none").victims == []


def test_pods_that_were_never_bound_are_known_since_retention_deleted_waits(
    ledger: Ledger, reader: LedgerReader
) -> None:
    day = 86_400
    ledger.write(step(at=30 * day, waits=rows(row("a", from_us=us(2 * day), to_us=us(2 * day + 1)))))
    assert pods_from_us(reader.state()) == us(OPENED_S)
    for _ in ledger.roll_up(5 * US_PER_DAY):
        pass

    assert last_pod(reader, "ml", "train") is None
    assert pods_from_us(reader.state()) == 5 * US_PER_DAY
    ledger.write(replace(step(at=31 * day), has_waits=False))
    assert pods_from_us(reader.state()) == us(OPENED_S), "without waits, only what held GPUs is known"

"""Which preemptions of jobs a webhook is to get: queued with the preemption, once, and finished once."""

from msgspec.structs import replace

from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.model.disruptions import Cause, Victim
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Checkpoint
from tests.contract.records import BY, DISRUPTION, LOST_WORK, recorded, step, us

VICTIM = replace(DISRUPTION, cause=Cause.PREEMPTION, job_preemption="a", announced=True)
SECOND = replace(VICTIM, victim_uid="b", announced=False, decided_us=8)
OTHER = replace(VICTIM, victim_uid="c", job_preemption="c")


def write(ledger: Ledger, *victims: Victim, at: int = 1000) -> None:
    ledger.write(step(at=at, victims={each.victim_uid: each for each in victims}))


def pending(reader: LedgerReader, *, after: str = "", limit: int = 10) -> list[tuple[str, int]]:
    return [(each.id, each.queued_us) for each in reader.pending_deliveries(after=after, limit=limit).page]


def test_a_preemption_of_a_job_is_queued_once_with_its_first_pod(ledger: Ledger, reader: LedgerReader) -> None:
    write(ledger, VICTIM, SECOND)
    write(ledger, replace(VICTIM, released_us=us(1100)), at=1100)

    assert pending(reader) == [("a", us(1000))]


def test_without_a_webhook_nothing_is_queued(ledger: Ledger, reader: LedgerReader) -> None:
    write(ledger, replace(VICTIM, announced=False))

    assert reader.pending_deliveries(after="", limit=1) == (0, 0, [])


def test_pending_ones_are_read_by_pages(ledger: Ledger, reader: LedgerReader) -> None:
    write(ledger, VICTIM, OTHER)

    found = reader.pending_deliveries(after="", limit=1)

    assert (found.total, [each.id for each in found.page]) == (2, ["a"])
    assert pending(reader, after="a", limit=1) == [("c", us(1000))]


def test_a_finished_delivery_is_never_pending_again(ledger: Ledger, reader: LedgerReader) -> None:
    write(ledger, VICTIM, OTHER)
    ledger.finish_delivery("a", "delivered", at_us=us(1001))
    ledger.finish_delivery("a", "rejected", at_us=us(1002))
    write(ledger, replace(VICTIM, released_us=us(1100)), at=1100)

    assert pending(reader) == [("c", us(1000))]


def test_a_withdrawn_preemption_that_is_reported_again_is_queued_again(ledger: Ledger, reader: LedgerReader) -> None:
    write(ledger, VICTIM)
    ledger.write(step(at=1001, victims={"a": None}))
    ledger.finish_delivery("a", "withdrawn", at_us=us(1002))
    assert pending(reader) == []

    write(ledger, VICTIM, at=1003)
    write(ledger, replace(VICTIM, released_us=us(1100)), at=1100)

    assert pending(reader) == [("a", us(1003))]
    ledger.finish_delivery("a", "delivered", at_us=us(1101))
    write(ledger, replace(VICTIM, replaced_us=us(1102)), at=1102)
    assert pending(reader) == []


def test_the_victims_have_their_preemptors_and_losses(ledger: Ledger, reader: LedgerReader) -> None:
    by = replace(BY, victim_priority=5, victim_class="low")
    ledger.write(
        step(
            at=1000,
            victims={each.victim_uid: each for each in (SECOND, replace(VICTIM, by=by), OTHER)},
            lost_work={"a": LOST_WORK, "c": replace(LOST_WORK, victim_uid="c", pods=())},
        )
    )

    found = reader.victims(["a"])

    assert [(each.victim_uid, each.by) for each in found.victims] == [("a", recorded(by)), ("b", None)]
    assert found.lost_work == {"a": LOST_WORK}
    assert reader.victims(["x"]) == ([], {})


def test_how_far_the_watch_of_pods_is_complete_is_known(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(at=1000, resumes={Kind.PODS: Checkpoint(version="1", at_us=us(999), rules="")}))

    assert reader.pending_deliveries(after="", limit=1).pods_complete_us == us(999)

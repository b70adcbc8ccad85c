"""Preemptions of pods for other workloads: by their queues, or by a scheduler for a PodGroup; on all back-ends."""

from msgspec.structs import replace

from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import Window
from gputally.model.units import GPU
from tests.contract.records import QUEUED, step


def test_a_preemption_by_a_queue_has_the_workload_and_is_gone_once_it_was_withdrawn(
    ledger: Ledger, reader: LedgerReader
) -> None:
    ledger.write(step(at=1000, counted_preemptions={"a": QUEUED}))

    [found] = reader.preemptions(Window(7, 8))
    assert (found.preemptor_uid, found.preemptor_kind, found.preemptor_name) == ("wl", "RayJob", "llm")
    assert (found.preemptor_tier, found.preemptor_tenant, found.preemptor_quantity) == ("high", "blue", 3 * GPU)
    assert (found.queue_rule, found.is_permitted) == ("InCohortReclamation", None)
    assert found.takers == frozenset({"b", "c"})

    ledger.write(step(at=1100, counted_preemptions={"a": None}))

    assert list(reader.preemptions(Window(7, 8))) == []


def test_the_pods_of_a_group_that_only_has_a_name_are_not_known(ledger: Ledger, reader: LedgerReader) -> None:
    """KAI-Scheduler names no UID; kube-scheduler does."""
    assert QUEUED.preemptor
    group = replace(QUEUED.preemptor, kind="PodGroup")
    by_scheduler = replace(QUEUED, preemptor=group, queue_rule=None)
    by_kai = replace(by_scheduler, victim_uid="c", preemptor=replace(group, uid=""))

    ledger.write(step(at=1000, counted_preemptions={"a": by_scheduler, "c": by_kai}))

    found = {each.victim_uid: each for each in reader.preemptions(Window(7, 8))}
    assert (found["a"].preemptor_uid, found["a"].takers) == ("wl", frozenset({"b", "c"}))
    assert (found["c"].preemptor_name, found["c"].takers) == ("llm", None)
    assert {each.is_permitted for each in found.values()} == {None}

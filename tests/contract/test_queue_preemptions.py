"""Preemptions of pods for other workloads: by their queues, or by a scheduler for a PodGroup; on all back-ends."""

from msgspec.structs import replace

from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import Window
from tests.contract.records import BY_QUEUE, QUEUED, recorded, step


def test_a_preemption_by_a_queue_has_the_workload_and_is_gone_once_it_was_withdrawn(
    ledger: Ledger, reader: LedgerReader
) -> None:
    ledger.write(step(at=1000, victims={"a": QUEUED}))

    [found] = reader.preemptions(Window(7, 8))
    assert found.by
    assert found.by == recorded(BY_QUEUE)
    assert (found.by.preemptor_tier, found.by.queue_rule) == ("high", "InCohortReclamation")
    assert (found.by.is_permitted, found.by.takers) == (None, frozenset({"b", "c"}))

    ledger.write(step(at=1100, victims={"a": None}))

    assert list(reader.preemptions(Window(7, 8))) == []


def test_the_pods_of_a_group_that_only_has_a_name_are_not_known(ledger: Ledger, reader: LedgerReader) -> None:
    """KAI-Scheduler names no UID; kube-scheduler does."""
    assert BY_QUEUE.preemptor
    group = replace(BY_QUEUE.preemptor, kind="PodGroup")
    by_scheduler = replace(BY_QUEUE, preemptor=group, queue_rule=None)
    by_kai = replace(by_scheduler, preemptor=replace(group, uid=""))
    victims = {"a": replace(QUEUED, by=by_scheduler), "c": replace(QUEUED, victim_uid="c", by=by_kai)}

    ledger.write(step(at=1000, victims=victims))

    named, unnamed = (each.by for each in reader.preemptions(Window(7, 8)))
    assert named
    assert unnamed
    assert (named.preemptor, named.takers) == (group, frozenset({"b", "c"}))
    assert (unnamed.preemptor, unnamed.takers) == (replace(group, uid=""), None)
    assert {named.is_permitted, unnamed.is_permitted} == {None}

"""Preemptions of pods whose queues made room for other workloads, on all back-ends."""

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

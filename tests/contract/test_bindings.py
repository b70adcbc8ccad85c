"""The pods that were bound to a node, on all back-ends."""

from msgspec.structs import replace

from gputally.ledger.preemption_records import NodeBinding
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import Window
from gputally.model.allocation import State
from gputally.model.disruptions import Cause, Preemptor, Victim
from gputally.model.units import GPU, US_PER_DAY
from gputally.reports.preemption_value import PreemptionValue, read_values
from tests.contract.records import ACCOUNTED_S, ALWAYS, BY, BY_QUEUE, DISRUPTION, NODE, pod, segment, step, us


def test_a_pod_has_what_it_was_bound_with_until_it_ends(ledger: Ledger, reader: LedgerReader) -> None:
    stop = segment(1100, 1200, state=State.TERMINATING, quantity=2 * GPU)
    two = segment(1000, 1200, resource="nvidia.com/mig", quantity=3)
    ledger.write(
        step(
            pod("a", segment(1000, 1100, quantity=2 * GPU), two, stop, scheduled_us=us(1000)),
            pod("b", segment(1150, None), scheduled_us=us(1150)),
            pod("early", segment(900, 1200), scheduled_us=us(900)),
            pod("elsewhere", segment(1000, 1100), node_uid="node-2", scheduled_us=us(1000)),
        )
    )

    assert list(reader.bindings(Window(us(1000), us(2000)), ["node-1", "unknown"])) == [
        NodeBinding(node_uid="node-1", pod_uid="a", start_us=us(1000), end_us=us(1200), quantity=2 * GPU + 3),
        NodeBinding(node_uid="node-1", pod_uid="b", start_us=us(1150), end_us=us(ACCOUNTED_S), quantity=GPU),
    ]


def test_a_corrected_binding_counts_once(ledger: Ledger, reader: LedgerReader) -> None:
    for end in (None, 1100):
        revision = 1 if end is None else 2
        ledger.write(step(pod("a", segment(1000, end), scheduled_us=us(1000), revision=revision), live=None))

    [found] = reader.bindings(Window(0, us(2000)), ["node-1"])
    assert found.end_us == us(1100)


def preempted(ledger: Ledger, *, released: int = 1035) -> Victim:
    """Pod `a` on node-1 is preempted by `b`, which needs none of its 2 GPUs."""
    victim = replace(
        DISRUPTION,
        cause=Cause.PREEMPTION,
        node_uid="node-1",
        quantity=2 * GPU,
        decided_us=us(1000),
        released_us=us(released),
        by=BY,
    )
    ended = pod("a", segment(900, released, quantity=2 * GPU), end_us=us(released), gap=None, scheduled_us=us(900))
    ledger.write(step(ended, at=released, victims={"a": victim}))
    return victim


def values(reader: LedgerReader) -> dict[str, PreemptionValue]:
    return read_values(reader, reader.disruptions(ALWAYS))


def test_gpus_are_stranded_until_now_or_until_their_node_is_gone(ledger: Ledger, reader: LedgerReader) -> None:
    preempted(ledger)
    ledger.write(step(at=1135, live=None))
    assert values(reader) == {"a": PreemptionValue(taken=0, bought=0, stranded=2 * GPU * us(100))}

    ledger.write(step(at=2000, live=None, nodes={NODE.uid: replace(NODE, gone_us=us(1095), gone_by_us=us(1095))}))
    assert values(reader)["a"].stranded == 2 * GPU * us(60)


def test_a_workload_has_what_all_of_its_pods_took(ledger: Ledger, reader: LedgerReader) -> None:
    victim = preempted(ledger)
    taken = [pod(uid, segment(1040, 1140), scheduled_us=us(1040)) for uid in ("b", "d")]
    late = pod("c", segment(1060, 1160), scheduled_us=us(1060))
    ledger.write(step(*taken, late, at=1200, live=None, victims={"a": replace(victim, by=BY_QUEUE)}))
    assert values(reader) == {
        "a": PreemptionValue(taken=1 * GPU, bought=GPU * us(100), stranded=2 * GPU * us(5)),
    }

    by = Preemptor(uid="wl", namespace="", name="")
    unknown = replace(BY_QUEUE, preemptor=by, preemptor_pods=(), preemptor_tier="unknown")
    ledger.write(step(at=1300, live=None, victims={"a": replace(victim, by=unknown)}))

    assert values(reader) == {"a": PreemptionValue(taken=None, bought=None, stranded=2 * GPU * us(5))}


def test_nothing_is_known_of_victims_that_the_retention_rolled_up(ledger: Ledger, reader: LedgerReader) -> None:
    preempted(ledger)
    ledger.write(step(at=10 * 86_400, live=None))
    assert [*ledger.roll_up(US_PER_DAY)][-1] == 1

    assert values(reader) == {}

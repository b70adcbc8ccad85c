"""The pods that were bound to a node, on all back-ends."""

from gputally.ledger.preemption_records import NodeBinding
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import Window
from gputally.model.allocation import State
from gputally.model.units import GPU
from tests.contract.records import ACCOUNTED_S, pod, segment, step, us


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

"""The contract of every ledger reader for waits with their prices, of pods and for pods that do not exist."""

from msgspec.structs import replace

from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import Window
from gputally.model.units import GPU
from gputally.model.waits import PendingSegmentRow
from tests.contract.records import ALWAYS, PRICE, WAIT, step
from tests.fakes.waits_ledger import QUOTA

LEAST = replace(QUOTA, uid="job-3", pods=1, price=None, is_at_least=True)


def test_wait_times_have_prices_and_those_for_pods_that_do_not_exist_are_told_apart(
    ledger: Ledger, reader: LedgerReader
) -> None:
    pods = {(uid, 7): PendingSegmentRow(uid=uid, namespace="ml", name=f"pod-{uid}", wait=WAIT) for uid in ("b", "a")}
    lacking = {(each.namespace, each.uid, each.from_us): each for each in (QUOTA, replace(QUOTA, uid="job-2"), LEAST)}
    ledger.write(step(at=1000, waits=pods, uncreated_waits=lacking))
    ledger.write(step(at=1300, uncreated_waits={("ml", "job-2", QUOTA.from_us): None}))

    found = list(reader.pending_times(ALWAYS))
    assert [(each.uid, each.is_created, each.pods, each.quantity) for each in found] == [
        ("a", True, 1, GPU),
        ("b", True, 1, GPU),
        ("job-1", False, 4, 8 * GPU),
        ("job-3", False, 1, 8 * GPU),
    ]
    assert [each.is_at_least for each in found] == [False, False, False, True]
    assert [each.price for each in found] == [PRICE, PRICE, PRICE, None]
    assert [each.uid for each in reader.pending_times(Window(0, 8))] == ["a", "b"]

"""The ledger adds up its own waits, losses and costs, and compares them with the sums of the counters."""

from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from gputally.accounting.totals.total import RECONCILED, Lines, Total
from gputally.ledger.protocol import Ledger
from gputally.model.price import Basis, Price, Purchase
from gputally.model.units import GPU, PICO
from gputally.model.verdicts import Reason
from gputally.model.waits import PendingSegmentRow, UncreatedPodsSegment, WaitCause
from tests.contract.conftest import BackEnd
from tests.contract.records import LOST_WORK, PRICE, WAIT, pod, segment, step, us

CHEAP = Price(
    key="cheap",
    currency="CHF",
    per_gpu_hour=Decimal("0.5"),
    rate=PICO // 2,
    basis=Basis.GPU,
    purchase=Purchase.ON_DEMAND,
)
ALL_0 = dict.fromkeys(RECONCILED, (0, 0))
LASTS = replace(WAIT, from_us=us(1100), quantity=3 * GPU)
UNCREATED = UncreatedPodsSegment(
    namespace="ml",
    uid="job-1",
    kind="Job",
    name="train",
    job_kind="Job",
    job="train",
    tier="low",
    tenant="red",
    pods=4,
    quantity=2 * GPU,
    reason=Reason.QUOTA,
    cause=WaitCause.QUOTA,
    from_us=us(1200),
    shown="low",
    price=CHEAP,
)


def row(uid: str, **changed: Any) -> dict[tuple[str, int], PendingSegmentRow]:  # noqa: ANN401 - any field of a wait
    wait = replace(LASTS, **changed)
    return {(uid, wait.from_us): PendingSegmentRow(uid=uid, namespace="ml", name=uid, wait=wait)}


def differences(ledger: Ledger, live: Lines, **changes: Any) -> Lines:  # noqa: ANN401 - any field of the changes
    """By how much sums other than these differ, after a write."""
    return ledger.write(step(live=ALL_0 | live, **changes))


def test_waits_that_last_end_and_are_withdrawn_count_with_their_cost(ledger: Ledger) -> None:
    lasting = {Total.PENDING: (-3 * GPU * us(1100), 3 * GPU)}
    lasting[Total.PENDING_COST] = (-3 * GPU * us(1100) * PRICE.rate, 3 * GPU * PRICE.rate)
    assert differences(ledger, lasting, waits=row("a")) == ALL_0

    unpriced = {Total.PENDING: (lasting[Total.PENDING][0] + 2 * GPU * us(50), 3 * GPU)}
    more = row("b", to_us=us(1150), quantity=2 * GPU, price=None)
    assert differences(ledger, lasting | unpriced, waits=more) == ALL_0
    assert differences(ledger, lasting | unpriced, waits=more) == ALL_0, "the same changes once more"

    ended = 3 * GPU * us(60) + 2 * GPU * us(50)
    ends = row("a", to_us=us(1160), price=CHEAP)
    final = {Total.PENDING: (ended, 0), Total.PENDING_COST: (3 * GPU * us(60) * CHEAP.rate, 0)}
    assert differences(ledger, final, waits=ends) == ALL_0
    withdrawn: dict[tuple[str, int], PendingSegmentRow | None] = dict.fromkeys((*row("a"), *row("b"), *row("unknown")))
    assert differences(ledger, {}, waits=withdrawn) == ALL_0


def test_the_pods_that_workloads_lack_count_with_their_cost(ledger: Ledger) -> None:
    a, b = -8 * GPU * us(1200), 8 * GPU
    lasting = {Total.UNCREATED: (a, b), Total.UNCREATED_COST: (a * CHEAP.rate, b * CHEAP.rate)}
    assert differences(ledger, lasting, uncreated_waits={("ml", "job-1", us(1200)): UNCREATED}) == ALL_0
    assert differences(ledger, {}, uncreated_waits={("ml", "job-1", us(1200)): None}) == ALL_0


def test_lost_work_counts_as_last_known(ledger: Ledger) -> None:
    cost = sum(amount for _, amount in LOST_WORK.costs)
    lost = {Total.DISRUPTION_LOST: (LOST_WORK.gpu_time, 0), Total.DISRUPTION_LOST_COST: (cost, 0)}
    assert differences(ledger, lost, lost_work={"a": LOST_WORK}) == ALL_0

    less = {Total.DISRUPTION_LOST: (7, 0), Total.DISRUPTION_LOST_COST: (9, 0)}
    revised = replace(LOST_WORK, gpu_time=7, costs=(("EUR", 4), ("USD", 5)))
    assert differences(ledger, less, lost_work={"a": revised}) == ALL_0
    assert differences(ledger, {}, lost_work={"a": None}) == ALL_0


def test_the_cost_of_segments_is_that_of_their_last_revision(ledger: Ledger) -> None:
    first, a = segment(1000, 1010), us(10) * GPU
    open_a, open_b = -us(1010) * GPU * CHEAP.rate, GPU * CHEAP.rate
    assert ledger.write(
        step(
            pod("a", first, segment(1010, None, price=CHEAP)),
            live={Total.COST: (a * PRICE.rate + open_a, open_b)},
        )
    ) == {Total.COST: (0, 0)}
    ended = pod("a", first, segment(1010, 1030, price=None), revision=2)
    assert ledger.write(step(ended, live={Total.COST: (a * PRICE.rate, 0)})) == {Total.COST: (0, 0)}


@pytest.mark.parametrize(
    ("sql", "differs"),
    [
        ("UPDATE waits SET quantity = 1", {Total.PENDING, Total.PENDING_COST}),
        ("UPDATE waits SET price_key = NULL", {Total.PENDING_COST}),
        ("DELETE FROM uncreated_waits", {Total.UNCREATED, Total.UNCREATED_COST}),
        ("UPDATE lost_work SET gpu_time = '5'", {Total.DISRUPTION_LOST}),
    ],
)
def test_a_row_that_something_else_changed_shows_as_a_difference(
    back_end: BackEnd, sql: str, differs: set[Total]
) -> None:
    uncreated = {("ml", "job-1", us(1200)): UNCREATED}
    rows: Any = {"waits": row("a"), "uncreated_waits": uncreated, "lost_work": {"a": LOST_WORK}}
    with back_end.open() as ledger:
        ledger.write(step(live=None, **rows))
    back_end.tamper(sql)

    with back_end.open() as ledger:
        found = differences(ledger, {}, **{name: dict.fromkeys(each) for name, each in rows.items()})
    assert {total for total, line in found.items() if line != (0, 0)} == differs

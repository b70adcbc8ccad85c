"""A ledger with waits of two tenants for what others hold, and of workloads whose pods do not exist."""

from pathlib import Path
from typing import Final

from msgspec.structs import replace

from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.units import GPU
from gputally.model.verdicts import Reason
from gputally.model.waits import Occupant, PendingSegment, PendingSegmentRow, UncreatedPodsSegment, WaitCause
from tests.contract.records import PRICE, WAIT, step, us
from tests.fakes.tenants_ledger import BLUE, CLUSTER, HOUR, RED

QUOTA: Final = UncreatedPodsSegment(
    namespace="ml",
    uid="job-1",
    kind="Job",
    name="train",
    job_kind="Job",
    job="train",
    tier="low",
    tenant=RED,
    pods=4,
    quantity=8 * GPU,
    reason=Reason.QUOTA,
    cause=WaitCause.QUOTA,
    from_us=us(HOUR),
    to_us=us(2 * HOUR),
    shown="low",
    price=PRICE,
)
OTHER: Final = replace(WAIT, reason=Reason.SCHEDULABLE, cause=WaitCause.OTHER, occupant=None, price=None)


def _wait(
    start_h: float, end_h: float | None, gpus: int, base: PendingSegment = WAIT, *, tenant: str = RED
) -> PendingSegment:
    end_us = None if end_h is None else us(int(end_h * HOUR))
    return replace(base, tenant=tenant, quantity=gpus * GPU, from_us=us(int(start_h * HOUR)), to_us=end_us)


WAITS: Final = {
    "a": (_wait(1, 2, 8), _wait(2, 2.25, 8, OTHER)),
    "b": (_wait(1, 1.5, 1),),
    "c": (_wait(4, None, 2, replace(WAIT, cause=WaitCause.CAPACITY)),),
    "d": (_wait(3, 4, 4, replace(WAIT, occupant=Occupant("high", RED), price=None), tenant=BLUE),),
}
"""By pod; that of c lasts, and the ledger ends at 05:00."""


def waits_ledger(folder: Path) -> Path:
    """Red waits for 12.5 GPU-hours, and lacks pods for 40 or more; blue waits for 4 that red holds, without a price."""
    path = folder / "l.db"
    rows = {
        (uid, each.from_us): PendingSegmentRow(uid=uid, namespace="ml", name=f"pod-{uid}", wait=each)
        for uid, waits in WAITS.items()
        for each in waits
    }
    fewer = replace(QUOTA, from_us=us(2 * HOUR), to_us=us(3 * HOUR), pods=1, price=None, is_at_least=True)
    lacking = {(each.namespace, each.uid, each.from_us): each for each in (QUOTA, fewer)}
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        ledger.write(step(at=5 * HOUR, waits=rows, uncreated_waits=lacking))
    return path

"""What waited for GPUs, and the priorities that decide who gets them."""

from typing import Final

from msgspec import Struct

from gputally.ledger.records import PriorityClassRecord, WaitRecord
from gputally.ledger.tables.table import Index, Table

PRIORITY_CLASSES: Final = Table("priority_classes", PriorityClassRecord, key=("name", "from_us"))


WAITS: Final = Table("waits", WaitRecord, key=("pod_uid", "from_us"), indexes=(Index("waits_from", ("from_us",)),))


class UncreatedWaitRow(Struct, frozen=True):
    """A time without changes in which a workload lacked pods. Retention deletes it.

    `to_us` is NULL while it lasts. `quantity` is that of one pod. `is_at_least` is 1 if the workload was not read: it
    lacked at least so many pods, as its refusal said.
    """

    namespace: str
    workload_uid: str
    from_us: int
    to_us: int | None
    kind: str
    name: str
    job_kind: str
    job: str
    tier: str
    tenant: str
    pods: int
    quantity: int
    reason: str
    cause: str
    price_key: str | None
    is_at_least: bool
    highest_price_key: str | None


UNCREATED_WAITS: Final = Table(
    "uncreated_waits",
    UncreatedWaitRow,
    key=("namespace", "workload_uid", "from_us"),
    indexes=(Index("uncreated_waits_from", ("from_us",)),),
)

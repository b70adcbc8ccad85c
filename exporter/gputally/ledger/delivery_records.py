"""What a ledger has of preemptions of jobs that a webhook is to get."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gputally.ledger.preemption_records import PreemptionRecord
from gputally.model.disruptions.disruption import DisruptionRecord
from gputally.model.work.lost_work import LostWork


class PendingDelivery(NamedTuple):
    """A preemption of a job that a webhook is to get, recorded at `queued_us`."""

    id: str
    queued_us: int


class PendingDeliveries(NamedTuple):
    """Some of the `total` pending deliveries, by ID. The ledger has all pods up to `pods_complete_us`."""

    total: int
    pods_complete_us: int
    page: Sequence[PendingDelivery]


class VictimRecords(NamedTuple):
    """Victims in the order of their decisions, with what is known of their preemptors and of the work they lost."""

    disruptions: Sequence[DisruptionRecord]
    preemptions: Mapping[str, PreemptionRecord]
    lost_work: Mapping[str, LostWork]

"""Who lost GPUs to whom."""

from collections.abc import Iterator

from gputally.accounting.preemptions import UNKNOWN
from gputally.accounting.snapshot import Snapshot
from gputally.accounting.totals import Total
from gputally.catalog.metric import Kind, Metric, Row


def preemptions(snapshot: Snapshot) -> Iterator[Row]:
    """The whole matrix of known tiers, zero too, so that the first preemption already is an increase."""
    counted = {p.labels: p for p in snapshot.totals[Total.PREEMPTIONS]}
    known = {(victim, by) for victim in snapshot.tiers for by in (*snapshot.tiers, UNKNOWN)}
    for labels in sorted(known | counted.keys()):
        found = counted.get(labels)
        yield Row(labels, found.value, found.created_us) if found else Row(labels, 0, snapshot.opened_us)


PREEMPTIONS = Metric[Snapshot](
    name="gputally_preemptions_total",
    kind=Kind.COUNTER,
    help="Pods with GPUs that the scheduler marked as preempted and deleted, by their tier and the preemptor's.",
    labels=("victim_tier", "preemptor_tier"),
    rows=preemptions,
)

METRICS = (PREEMPTIONS,)

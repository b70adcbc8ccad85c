"""Who lost GPUs to whom."""

from collections.abc import Iterator

from gputally.accounting.snapshot import Snapshot
from gputally.accounting.totals import Total
from gputally.catalog.metric import Kind, Metric, Row


def preemptions(snapshot: Snapshot) -> Iterator[Row]:
    """The whole matrix of known tiers, zero too, so that the first preemption already is an increase."""
    return (Row(p.labels, p.value, p.created_us) for p in snapshot.totals[Total.PREEMPTIONS])


PREEMPTIONS = Metric[Snapshot](
    name="gputally_preemptions_total",
    kind=Kind.COUNTER,
    help="Pods with GPUs that the scheduler marked as preempted and deleted, by their tier and the preemptor's.",
    labels=("victim_tier", "preemptor_tier"),
    rows=preemptions,
)

METRICS = (PREEMPTIONS,)

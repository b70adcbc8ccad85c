"""Who has which GPUs, and what that costs."""

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal

from gputally.accounting.snapshot import Snapshot
from gputally.accounting.totals import Published, Total
from gputally.catalog.metric import Kind, Metric, Row
from gputally.model.units import COST_UNIT, GPU, GPU_SECOND

Rows = Callable[[Snapshot], Iterator[Row]]


def gpu_seconds(total: Total) -> Rows:
    """Rows of a family of GPU-time in GPU-seconds."""
    return lambda snapshot: (Row(p.labels, p.value / GPU_SECOND, p.created_us) for p in snapshot.totals[total])


def cost(total: Total) -> Rows:
    """Rows of a family of cost in its currency: exact until this one rounding."""
    return lambda snapshot: (
        Row(p.labels, float(Decimal(p.value) / COST_UNIT), p.created_us) for p in snapshot.totals[total]
    )


def allocated_gpus(snapshot: Snapshot) -> Iterator[Row]:
    """GPUs held now are what their GPU-time grows by; groups that hold none any more stay, as 0."""
    return _slopes(snapshot.totals[Total.ALLOCATED], keep=3)


def _slopes(published: Iterable[Published], *, keep: int) -> Iterator[Row]:
    sums: dict[tuple[str, ...], int] = {}
    for each in published:
        group = each.labels[:keep]
        sums[group] = sums.get(group, 0) + each.slope
    return (Row(group, slope / GPU) for group, slope in sums.items())


ALLOCATED_GPU_SECONDS = Metric[Snapshot](
    name="gputally_allocated_gpu_seconds_total",
    kind=Kind.COUNTER,
    help="GPU-seconds allocated to pods from binding to release, as starting, running or terminating.",
    labels=("tier", "tenant", "gpu_model", "state"),
    rows=gpu_seconds(Total.ALLOCATED),
)

ALLOCATED_COST = Metric[Snapshot](
    name="gputally_allocated_cost_total",
    kind=Kind.COUNTER,
    help="Cost of the allocated GPU-seconds that have a price, in units of the currency.",
    labels=("tier", "tenant", "gpu_model", "state", "currency"),
    rows=cost(Total.COST),
)

ALLOCATED_GPUS = Metric[Snapshot](
    name="gputally_allocated_gpus",
    kind=Kind.GAUGE,
    help="GPUs allocated to pods now, fractions included.",
    labels=("tier", "tenant", "gpu_model"),
    rows=allocated_gpus,
)

UNPRICED_GPU_SECONDS = Metric[Snapshot](
    name="gputally_unpriced_gpu_seconds_total",
    kind=Kind.COUNTER,
    help="Allocated GPU-seconds that no price rule covers and that no cost contains.",
    labels=("tier", "tenant", "gpu_model"),
    rows=gpu_seconds(Total.UNPRICED),
)

BLIND_GPU_SECONDS = Metric[Snapshot](
    name="gputally_blind_gpu_seconds_total",
    kind=Kind.COUNTER,
    help="GPU-seconds inside blind intervals, where an allocation ended unseen and is charged to the start only.",
    labels=("tier", "tenant", "gpu_model"),
    rows=gpu_seconds(Total.BLIND),
)

METRICS = (ALLOCATED_GPU_SECONDS, ALLOCATED_COST, ALLOCATED_GPUS, UNPRICED_GPU_SECONDS, BLIND_GPU_SECONDS)

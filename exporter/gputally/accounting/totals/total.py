"""The families of published counters, and their labels."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

_BY_POD: Final = ("tier", "tenant", "gpu_model")
_BY_NODE: Final = ("gpu_model", "pool")


class Total(StrEnum):
    """The families of counters. Values are GPU-time (µs·µGPU), cost (GPU-time x pico-rate) or counts, unless stated."""

    ALLOCATED = "allocated"
    COST = "cost"
    UNPRICED = "unpriced"
    PURCHASED = "purchased"
    """Allocated time by purchase option of the node; `unknown` without a price."""
    CAPACITY = "capacity"
    CAPACITY_COST = "capacity_cost"
    PHYSICAL = "physical"
    """Physical GPUs from node facts alone; all states of capacity must add up to it."""
    PHYSICAL_COST = "physical_cost"
    """The cost of physical GPUs, of all currencies together; the cost of all states must add up to it."""
    PREEMPTIONS = "preemptions"
    PREEMPTED = "preempted"
    """µGPU allocated to victims."""
    FORBIDDEN = "forbidden_preemptions"
    """Preemptions that the priorities do not permit."""
    TENANT_PREEMPTIONS = "tenant_preemptions"
    DISRUPTIONS = "disruptions"
    """Disrupted pods, by cause."""
    GRACE_EXCEEDED = "grace_exceeded"
    """Disrupted pods that had their GPUs for longer than their grace period allows."""
    BUDGET_VIOLATIONS = "disruption_budget_violations"
    """Disrupted pods of which a PodDisruptionBudget allowed no disruption, by cause."""
    PREEMPTION_STEPS = "preemption_steps"
    """Preemptions by step and upper bound of its duration (s), not cumulative."""
    PREEMPTION_STEP_TIME = "preemption_step_time"
    """Sum of the durations of a step, µs."""
    LOST = "lost"
    """Running time of preempted pods, and of what restarted with them, since their last checkpoints; by its source."""
    LOST_COST = "lost_cost"
    LOST_AT_INTERVAL = "lost_at_interval"
    DISRUPTION_LOST = "disruption_lost"
    """Running time of disrupted pods since their last checkpoints, by cause; that of deleted pods does not count."""
    DISRUPTION_LOST_COST = "disruption_lost_cost"
    STALLED = "stalled"
    """Running time of pods that waited for the replacement of a preempted pod of their group."""
    JOB = "job"
    """GPU-time of ended jobs, by outcome."""
    ENDED_EARLY = "ended_early"
    """Jobs that preemptions ended, by outcome."""
    SCHEDULED = "scheduled"
    """Bound pods by tier and upper bound of their time to schedule (s), not cumulative."""
    SCHEDULING_TIME = "scheduling_time"  # the sum of these times, µs
    PENDING = "pending"
    """GPU-time that pods waited, from their creation until they were bound or deleted, by cause."""
    PENDING_COST = "pending_cost"  # at the price of the GPU model that the pod selects
    PENDING_UNPRICED = "pending_unpriced"
    UNCREATED = "uncreated"
    """GPU-time of pods that workloads lacked, by cause; none of it is in `PENDING`."""
    UNCREATED_COST = "uncreated_cost"
    UNCREATED_UNPRICED = "uncreated_unpriced"
    UNCREATED_AT_LEAST = "uncreated_at_least"  # that of workloads that may have lacked more pods than are known
    UNOBSERVED = "unobserved"
    """GPU-time in observation gaps that may have been allocated but is not charged."""
    MEASURED = "measured"
    """Allocated time with known utilisation."""
    USED = "used"
    BURST = "burst"
    """Used time above the allocated share."""
    IDLE_COST = "idle_cost"
    ENERGY = "energy"
    """mJ, of allocated GPUs."""
    UNMATCHED = "unmatched"
    """Measured time of assignments to pods that the API server did not report."""
    UNATTRIBUTED = "unattributed"
    """Used time of unallocated GPUs."""
    UNALLOCATED_ENERGY = "unallocated_energy"
    """mJ, of unallocated GPUs."""


LABELS: Final[Mapping[Total, tuple[str, ...]]] = {
    **dict.fromkeys(Total, _BY_POD),
    **dict.fromkeys((Total.CAPACITY, Total.CAPACITY_COST, Total.UNATTRIBUTED, Total.UNALLOCATED_ENERGY), _BY_NODE),
    **dict.fromkeys((Total.PREEMPTIONS, Total.PREEMPTED, Total.FORBIDDEN), ("tier", "tier")),
    **dict.fromkeys((Total.PENDING, Total.PENDING_COST, Total.PENDING_UNPRICED), ("tier", "tier")),
    **dict.fromkeys((Total.TENANT_PREEMPTIONS, Total.JOB, Total.ENDED_EARLY, Total.PURCHASED), ("tier", "tenant")),
    **dict.fromkeys((Total.DISRUPTIONS, Total.GRACE_EXCEEDED, Total.BUDGET_VIOLATIONS), ("tier", "tenant")),
    **dict.fromkeys((Total.LOST, Total.LOST_COST, Total.LOST_AT_INTERVAL, Total.STALLED), ("tier", "tenant")),
    **dict.fromkeys((Total.DISRUPTION_LOST, Total.DISRUPTION_LOST_COST), ("tier", "tenant")),
    **dict.fromkeys((Total.SCHEDULED, Total.SCHEDULING_TIME, Total.UNCREATED, Total.UNCREATED_COST), ("tier",)),
    **dict.fromkeys((Total.UNCREATED_UNPRICED, Total.UNCREATED_AT_LEAST), ("tier",)),
    **dict.fromkeys((Total.PREEMPTION_STEPS, Total.PREEMPTION_STEP_TIME, Total.UNMATCHED), ()),
    **dict.fromkeys((Total.PHYSICAL, Total.PHYSICAL_COST), ()),
}
"""The bounded labels that the labels of each family begin with."""

Lines = dict[Total, tuple[int, int]]
"""Sums over whole families, each as a line a + b·t."""
RECONCILED: Final[Mapping[Total, str]] = {
    **dict.fromkeys((Total.ALLOCATED, Total.COST), "ledger"),
    **dict.fromkeys((Total.PENDING, Total.PENDING_COST), "pending"),
    **dict.fromkeys((Total.UNCREATED, Total.UNCREATED_COST), "uncreated"),
    **dict.fromkeys((Total.DISRUPTION_LOST, Total.DISRUPTION_LOST_COST), "lost"),
}
"""The families that the ledger sums up from its own rows as well, and the names of these checks."""
GPU_TIMES: Final = (
    *(Total.ALLOCATED, Total.UNPRICED, Total.UNOBSERVED, Total.CAPACITY, Total.JOB),
    *(Total.PENDING, Total.PENDING_UNPRICED),
    *(Total.UNCREATED, Total.UNCREATED_UNPRICED, Total.UNCREATED_AT_LEAST),
    *(Total.LOST, Total.LOST_AT_INTERVAL, Total.DISRUPTION_LOST, Total.STALLED),
    *(Total.MEASURED, Total.USED, Total.BURST, Total.UNMATCHED, Total.UNATTRIBUTED),
)
"""The exported families of GPU-time."""
COSTS: Final = (
    *(Total.COST, Total.CAPACITY_COST, Total.PENDING_COST, Total.UNCREATED_COST),
    *(Total.LOST_COST, Total.DISRUPTION_LOST_COST, Total.IDLE_COST),
)
"""The families of cost; their last label is the currency."""
COUNTS: Final = (
    *(Total.PREEMPTIONS, Total.FORBIDDEN, Total.TENANT_PREEMPTIONS, Total.PREEMPTION_STEPS),
    *(Total.DISRUPTIONS, Total.GRACE_EXCEEDED, Total.BUDGET_VIOLATIONS),
    *(Total.ENDED_EARLY, Total.SCHEDULED),
)
"""The families that count events."""

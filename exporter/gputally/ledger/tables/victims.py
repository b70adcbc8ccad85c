"""Preemptions and other disruptions, the work that they destroyed, and the pending deliveries to a webhook."""

from typing import Final

from msgspec import Struct

from gputally.ledger.tables.table import BigInteger, Index, Table
from gputally.model.disruptions import VictimRecord


class VictimRow(Struct, frozen=True):
    """A pod that lost its GPUs before it had ended by itself, or whose containers restarted.

    `is_disruption` is 0 for a preempted pod that never had its GPUs. `budget_violated` says whether a
    PodDisruptionBudget allowed no disruption when it was decided, NULL if not known. `job_preemption` is the UID of the
    first pod of one preemption of a job, '' for other causes. `exit_code` is that of the container that failed first;
    `uses_retry` says that the pod's Job counts it as failed.

    `preemptor_tier` and the columns after it are NULL unless it is counted as a preemption. If a queue did it, the
    preemptor is a workload: `preemptor_uid` is that of its Workload, `preemptor_kind` and `preemptor_name` are those of
    its job, `preemptor_quantity` is what its pods request, and `preemptor_pods` are the UIDs of those on the node
    (JSON). `queue_rule` is NULL for other preemptions, and '' for a rule that is not known. What permitted it is NULL
    if not known.
    """

    victim_uid: str
    recorded_us: int
    victim_namespace: str
    victim_name: str
    victim_tier: str
    victim_tenant: str
    job_kind: str
    job: str
    node: str
    node_uid: str
    quantity: int
    is_disruption: bool
    cause: str
    is_certain: bool
    decided_us: int
    requested_us: int | None
    grace_us: int | None
    stopped_us: int | None
    released_us: int | None
    reused_us: int | None
    replaced_us: int | None
    replacement_uid: str
    budget_violated: bool | None
    job_preemption: str
    exit_code: int | None
    uses_retry: bool
    preemptor_tier: str | None
    preemptor_uid: str | None
    preemptor_namespace: str | None
    preemptor_name: str | None
    is_inferred: bool | None
    victim_class: str | None
    victim_priority: int | None
    preemptor_class: str | None
    preemptor_priority: int | None
    preemptor_may_preempt: bool | None
    preemptor_tenant: str | None
    preemptor_kind: str | None
    preemptor_quantity: int | None
    preemptor_pods: str | None
    queue_rule: str | None


VICTIMS: Final = Table(
    "victims",
    VictimRow,
    key=("victim_uid",),
    indexes=(
        Index("victims_decided", ("decided_us",)),
        Index("victims_job_preemption", ("job_preemption",), where="job_preemption != ''"),
    ),
)


OF_VICTIM: Final = tuple(name for name in VictimRecord.__struct_fields__ if name != "by")
"""The columns that are fields of a `VictimRecord`."""
OF_PREEMPTION: Final = ("preemptor_tier", "victim_priority", "victim_class", "queue_rule")
"""The columns that are fields of its `Preemption`."""
OF_PREEMPTOR: Final = {
    "is_inferred": "is_inferred",
    "preemptor_uid": "uid",
    "preemptor_namespace": "namespace",
    "preemptor_name": "name",
    "preemptor_tenant": "tenant",
    "preemptor_class": "class_name",
    "preemptor_priority": "priority",
    "preemptor_may_preempt": "may_preempt",
    "preemptor_kind": "kind",
    "preemptor_quantity": "quantity",
}
"""The fields of the preemptor, by column."""
VICTIM_COLUMNS: Final = (*OF_VICTIM, *OF_PREEMPTION, *OF_PREEMPTOR, "preemptor_pods")
"""All columns but the time of the record, in the order in which records are read and written."""


class LostWorkRow(Struct, frozen=True):
    """The work that a disruption destroyed, by victim; GPU-time in µs·µGPU.

    `costs` and `at_intervals` are JSON: `[[currency, cost], ...]` and `[[µs between two checkpoints, GPU-time], ...]`.
    """

    victim_uid: str
    recorded_us: int
    gpu_time: BigInteger
    costs: str
    basis: str
    checkpoint_us: int
    members: int
    stalled_gpu_time: BigInteger
    at_intervals: str
    is_final: bool


LOST_WORK: Final = Table("lost_work", LostWorkRow, key=("victim_uid",))


class LostPodRow(Struct, frozen=True):
    """A pod that lost work to the preemption of a victim, which may be itself. It has one row, since it counts once.

    What it did in [`from_us`, `to_us`) is lost; `basis` says how the checkpoint at its start is known.
    """

    pod_uid: str
    victim_uid: str
    from_us: int
    to_us: int
    basis: str


LOST_PODS: Final = Table(
    "lost_pods", LostPodRow, key=("pod_uid",), indexes=(Index("lost_pods_victim", ("victim_uid",)),)
)


class DeliveryRow(Struct, frozen=True):
    """A record of a preemption of a job that a webhook gets, if one was configured at that time.

    `result` is NULL until that is done.
    """

    job_preemption: str
    queued_us: int
    result: str | None
    finished_us: int | None


PREEMPTION_DELIVERIES: Final = Table(
    "preemption_deliveries",
    DeliveryRow,
    key=("job_preemption",),
    indexes=(Index("preemption_deliveries_pending", ("job_preemption",), where="result IS NULL"),),
)

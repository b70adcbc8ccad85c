"""The involuntary end of a pod with GPUs: its cause and the times of its steps."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from gputally.model.disruptions.queue_preemptor import QueuePreemptor


class Cause(StrEnum):
    """Why a pod lost its GPUs before its containers had ended by themselves."""

    PREEMPTION = "preemption"
    """kube-scheduler, or a scheduler that marks its victims alike, made room for a pod of higher priority."""
    KUBELET_ADMISSION = "kubelet_admission"
    """A kubelet made room for a critical pod."""
    QUEUE_PREEMPTION = "queue_preemption"
    """Its queue system stopped its workload for another one."""
    QUEUE_EVICTION = "queue_eviction"
    """Its queue system stopped its workload for another reason, or for one that is not known."""
    CONSOLIDATION = "consolidation"
    """Its scheduler moved it, to pack the pods of its nodes on fewer."""
    TAINT = "taint"
    """The node got a NoExecute taint that the pod does not tolerate."""
    DEVICE_TAINT = "device_taint"
    """A device of the pod got a taint that its claim does not tolerate."""
    EVICTION = "eviction"
    """The Eviction API, as by `kubectl drain`, a descheduler or an autoscaler."""
    NODE_PRESSURE = "node_pressure"
    """The kubelet evicted it, as memory or disk of the node ran out."""
    NODE_SHUTDOWN = "node_shutdown"
    """The kubelet stopped it, as the machine shut down."""
    NODE_LOST = "node_lost"
    """The node is gone."""
    SPOT_RECLAIM = "spot_reclaim"
    """The cloud took a spot machine back."""
    SCALE_DOWN = "scale_down"
    """An autoscaler removed the node."""
    CONTAINER_RESTART = "container_restart"
    """A container failed and was restarted, or its kubelet restarted all containers: the pod kept its GPUs."""
    DELETION = "deletion"
    """A user or a controller deleted it."""
    OTHER = "other"
    """A reason that Kubernetes does not define."""


CAUSES: Final = frozenset(Cause)
PREEMPTIONS: Final = frozenset({Cause.PREEMPTION, Cause.KUBELET_ADMISSION, Cause.QUEUE_PREEMPTION})
"""A scheduler, a kubelet or a queue system made room for another pod."""
JOB_PREEMPTIONS: Final = frozenset({Cause.PREEMPTION, Cause.QUEUE_PREEMPTION})
"""Of these, what happens to the pods of one job is one preemption of the job."""
QUEUE_CAUSES: Final = frozenset({Cause.QUEUE_PREEMPTION, Cause.QUEUE_EVICTION})
OWN_JOB: Final = "Pod"
"""The kind of the job of a pod without an owner: nothing replaces it."""


class Disrupted(Struct, frozen=True, gc=False):
    """What the pod's own object or its queue says: the cause, and when that was decided (µs).

    `by` is whom a queue names as its preemptor.
    """

    cause: Cause
    at_us: int
    by: QueuePreemptor = QueuePreemptor()


class DisruptionRecord(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One disrupted pod, the victim, as the ledger has it; times are µs, None if not reached or not known.

    `cause` is the verdict with what its node shows; it is likely rather than certain unless `is_certain`. `quantity` is
    the victim's allocation in µGPU. `stopped_us` is the end of its last container, `released_us` the end of its
    allocation. `reused_us` is when the next pod was bound to its node, and `replaced_us` when the pod that replaces it,
    `replacement_uid`, ran. `budget_violated` says whether a PodDisruptionBudget of the victim allowed no disruption
    when it was decided; None if that is not known.

    `job_preemption` is the UID of the first of the pods that were preempted with it, empty for other causes.
    `exit_code` is that of the container that failed first, and `uses_retry` says that its Job counts it as a failure.
    """

    victim_uid: str
    victim_namespace: str
    victim_name: str
    victim_tier: str
    victim_tenant: str
    job_kind: str
    job: str
    node: str
    node_uid: str
    quantity: int
    cause: Cause
    is_certain: bool = True
    decided_us: int
    requested_us: int | None = None
    grace_us: int | None = None
    stopped_us: int | None = None
    released_us: int | None = None
    reused_us: int | None = None
    replaced_us: int | None = None
    replacement_uid: str = ""
    budget_violated: bool | None = None
    job_preemption: str = ""
    exit_code: int | None = None
    uses_retry: bool = False

    @property
    def grace_exceeded_us(self) -> int | None:
        """How much longer than its grace period a victim had its GPUs after the request; None while unknown."""
        if self.requested_us is None or self.grace_us is None or self.released_us is None:
            return None
        return max(0, self.released_us - self.requested_us - self.grace_us)


class Disruption(DisruptionRecord, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A disruption with what only the accounting needs.

    `reported` is the cause by the pod's object alone, and it was observed at `noticed_us`. Its `job_preemption` is
    `announced` if a webhook is to get that; `began_us` is when the first pod of it was observed, if a queue did it.
    `group` is that of a pod without an owner, if it is in one. `by` is whom a queue names as its preemptor.

    `counted` are the labels (tier, tenant, cause) under which it is counted, and `violation` those as one that violates
    a budget. `timed` are the durations (µs) that are in the histogram, by step; `overran` says that it is counted as
    one that exceeded its grace period.
    """

    reported: Cause
    noticed_us: int
    announced: bool = False
    began_us: int | None = None
    group: str = ""
    by: QueuePreemptor = QueuePreemptor()
    counted: tuple[str, str, str] | None = None
    timed: tuple[tuple[str, int], ...] = ()
    overran: bool = False
    violation: tuple[str, str, str] | None = None

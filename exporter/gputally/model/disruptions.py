"""Pods that lost their GPUs involuntarily: the cause, the steps and the preemptor."""

from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from gputally.model.units import US_PER_SECOND

OWN_JOB: Final = "Pod"
"""The kind of the job of a pod without an owner: nothing replaces it."""
TOGETHER_US: Final = 10 * US_PER_SECOND
"""Pods of a job that are decided within this time of the first observed one are one preemption. kube-scheduler sends 50
requests a second, two for each victim."""
QUEUE_TOGETHER_US: Final = 60 * US_PER_SECOND
"""Pods that a queue stopped for the same workload within this time are one preemption: controllers send
about 20 deletions a second."""
CLOSED_US: Final = 30 * US_PER_SECOND
"""Once the watch of pods is complete up to so long after that one's decision, no further pod is added: the scheduler
marks a pod, and its deletion, with which it counts, follows within seconds."""
QUEUE_CLOSED_US: Final = QUEUE_TOGETHER_US
"""A preemption by a queue is closed so long after it was first observed: its Workload may be observed late."""


class QueuePreemptor(NamedTuple):
    """The UIDs of the Workload that was to be admitted and of its job, and the rule; "" for what is not said."""

    uid: str = ""
    rule: str = ""
    job_uid: str = ""


class Cause(StrEnum):
    """Why a pod lost its GPUs before its containers had ended by themselves."""

    PREEMPTION = "preemption"
    """kube-scheduler, or a scheduler that marks its victims alike, made room for a pod of higher priority."""
    KUBELET_ADMISSION = "kubelet_admission"
    """A kubelet made room for a critical pod."""
    QUEUE_PREEMPTION = "queue_preemption"
    """The pod's queue system stopped its workload for another one."""
    QUEUE_EVICTION = "queue_eviction"
    """The pod's queue system stopped its workload for another reason, or for one that is not known."""
    CONSOLIDATION = "consolidation"
    """The pod's scheduler moved it, to pack the pods of its nodes on fewer."""
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
"""Causes that count once for a job, however many of its pods they stop."""
QUEUE_CAUSES: Final = frozenset({Cause.QUEUE_PREEMPTION, Cause.QUEUE_EVICTION})


class Disrupted(Struct, frozen=True, gc=False):
    """What the pod's own object or its queue says: the cause, and when that was decided (µs).

    `by` is whom a queue names as its preemptor.
    """

    cause: Cause
    at_us: int
    by: QueuePreemptor = QueuePreemptor()


class Preemptor(Struct, frozen=True, kw_only=True, gc=False):
    """The pod that an Event names as the cause, with its last known tier; "" while that is unknown.

    `is_inferred` says that no Event names it: it was the only pod nominated to the victim's node at that time.
    `priority` is None while the pod is not known, and `may_preempt` says that its preemptionPolicy is not Never;
    `class_name` is its PriorityClass, "" without one.

    Of a preemption by a queue it is a workload: `uid` is that of the Workload, `priority` its priority in queues,
    `job_uid`, `kind` and `name` are those of its job, and `quantity` is what all of its pods request (µGPU), None while
    that is not known.
    """

    uid: str
    namespace: str
    name: str
    tier: str = ""
    tenant: str = ""
    is_inferred: bool = False
    priority: int | None = None
    may_preempt: bool = True
    class_name: str = ""
    kind: str = ""
    quantity: int | None = 0
    job_uid: str = ""


class Preemption(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """For whom a victim was preempted, as the ledger has it.

    `preemptor` is None if it is not known. It is counted under `preemptor_tier`, "" while it may still become known.
    `victim_priority` is None if it is not known, and `victim_class` is "" without one.

    If a queue preempted the victim's workload for another one, `queue_rule` is its rule, "" for one that is not known;
    None if the scheduler did. Priorities are those of both workloads then. `preemptor_pods` are the pods of that
    workload on the node, by UID. A scheduler may preempt for a PodGroup, which is such a workload.
    """

    preemptor: Preemptor | None = None
    preemptor_tier: str = ""
    preemptor_pods: tuple[str, ...] = ()
    victim_priority: int | None = None
    victim_class: str = ""
    queue_rule: str | None = None

    @property
    def is_permitted(self) -> bool | None:
        """Whether the priorities permit it: the preemptor's is higher, and its policy is not Never.

        None if they are not known, or do not decide, as of a queue, which has rules of its own.

        Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
        isPreemptionAllowed and PodEligibleToPreemptOthers.
        """
        by = self.preemptor
        if self.queue_rule is not None or by is None or by.priority is None or self.victim_priority is None:
            return None
        return by.may_preempt and by.priority > self.victim_priority

    @property
    def preemptor_priority(self) -> int | None:
        """The priority of the preemptor; None if it is not known."""
        return self.preemptor.priority if self.preemptor else None

    @property
    def workload(self) -> Preemptor | None:
        """The preemptor, if it is a workload that is known, rather than a pod."""
        return self.preemptor if self.preemptor and self.preemptor.kind else None

    @property
    def is_for_workload(self) -> bool:
        """Whether it was for all pods of a workload, rather than for one pod."""
        return self.queue_rule is not None or self.workload is not None

    @property
    def takers(self) -> frozenset[str] | None:
        """The pods, by UID, for which it was; None if they are not known, as KAI-Scheduler names no UID of a group."""
        by = self.preemptor
        if by is None or not by.uid:
            return None
        if by.kind:
            return frozenset(self.preemptor_pods)
        return frozenset({by.uid}) if self.queue_rule is None else None


class VictimRecord(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One pod that lost its GPUs involuntarily, as the ledger has it; times are µs, None if not reached or not known.

    `cause` is the verdict with what its node shows; it is likely rather than certain unless `is_certain`. `quantity` is
    the victim's allocation in µGPU when it was first observed as a victim. `requested_us` is that of its deletion,
    `stopped_us` the end of its last container, `released_us` the end of its allocation. `reused_us` is when the next
    pod was bound to its node, and `replaced_us` when the pod that replaces it, `replacement_uid`, ran.
    `budget_violated` says whether a PodDisruptionBudget of the victim allowed no disruption when it was decided; None
    if that is not known.

    `by` says for whom it was preempted. None for other causes, and of a preemption by a kubelet, or by a queue whose
    workloads are not watched. A pod that a scheduler preempted before it had its GPUs is no disruption.

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
    is_disruption: bool = True
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
    by: Preemption | None = None

    @property
    def grace_exceeded_us(self) -> int | None:
        """How much longer than its grace period a victim had its GPUs after the request; None while unknown."""
        if self.requested_us is None or self.grace_us is None or self.released_us is None:
            return None
        return max(0, self.released_us - self.requested_us - self.grace_us)


class CountedPreemption(Preemption, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A preemption, observed at `noticed_us`, and how it is counted: under the exported `counted_tier` of the victim.

    `is_forbidden` says that it is counted as one that the priorities do not permit.
    """

    noticed_us: int
    counted_tier: str = ""
    is_forbidden: bool = False

    @property
    def counted(self) -> tuple[str, str] | None:
        """The tiers of victim and preemptor under which it is counted; None while the preemptor may become known."""
        return (self.counted_tier, self.preemptor_tier) if self.preemptor_tier else None


class Victim(VictimRecord, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A victim with what only the accounting needs.

    `reported` is the cause by the pod's object alone, and it was observed at `noticed_us`. Its `job_preemption` is
    `announced` if a webhook is to get that; `began_us` is when the first pod of it was observed, if a queue did it.
    `group` is that of a pod without an owner, if it is in one. `named` is whom a queue names as its preemptor.

    `counted` are the labels (tier, tenant, cause) under which the disruption is counted, and `violation` those as one
    that violates a budget. `timed` are the durations (µs) that are in the histogram, by step; `overran` says that it is
    counted as one that exceeded its grace period.
    """

    reported: Cause
    noticed_us: int
    announced: bool = False
    began_us: int | None = None
    group: str = ""
    named: QueuePreemptor = QueuePreemptor()
    counted: tuple[str, str, str] | None = None
    timed: tuple[tuple[str, int], ...] = ()
    overran: bool = False
    violation: tuple[str, str, str] | None = None
    by: CountedPreemption | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether the ledger has it: as a disruption, or as a preemption that is counted."""
        return self.is_disruption or bool(self.by and self.by.counted)

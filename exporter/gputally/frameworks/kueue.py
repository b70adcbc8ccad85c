"""Kueue: labels and gates of pods in its queues, groups of pods, Workloads, and why it evicts or preempts them.

Shapes: kueue apis/kueue/v1beta2, and v1beta1.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from msgspec import field

from gputally.frameworks.framework import Framework, GroupLabels, OnLoss, StatedGang
from gputally.frameworks.stated import NO_GANG, first_of, pods_in
from gputally.model.disruptions import Cause, QueuePreemptor
from gputally.model.kube.meta import Camel, Condition, Labels, Object
from gputally.model.kube.pods import PodTemplate, Texts

_NAME: Final = "Kueue"
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
"""Label of a job, or of its pods, that names its LocalQueue."""
_QUEUES: Final = ("kueue.x-k8s.io/local-queue-name", QUEUE_LABEL)
_GATE: Final = "kueue.x-k8s.io/"
"""How the names of its scheduling gates begin."""
CLASS_LABEL: Final = "kueue.x-k8s.io/priority-class"
"""Label of a job, or of its pods, that names a WorkloadPriorityClass."""
_GROUP: Final = "kueue.x-k8s.io/pod-group-name"
"""Label of a group of pods, of which the Workload has the name."""
_GROUP_SIZE: Final = "kueue.x-k8s.io/pod-group-total-count"
_SERVING: Final = "kueue.x-k8s.io/pod-group-serving"
"""Marks pods of Deployments and StatefulSets, which Kueue manages as groups."""
_WORKLOAD: Final = "kueue.x-k8s.io/workload"
WORKLOAD: Final = "Workload"
"""The kind of the objects in its queues."""
KINDS_WITH_PODS: Final = frozenset({"Pod", "LeaderWorkerSet", "StatefulSet", "Deployment", "ReplicaSet"})
"""Kinds whose pods exist while they wait: Kueue holds these back with a scheduling gate, and suspends all others."""
_NEVER: Final = "ExceedsMaxQuota"
_NEVER_TEXT: Final = "> maximum capacity"
"""Part of the message of versions without that reason."""
TERMINATION_TARGET: Final = "TerminationTarget"
"""The condition of pods that Kueue manages itself, and deletes: plain pods, pod groups, those of LeaderWorkerSets.

Its reason is WorkloadEvicted, with DueTo and why in later versions. JobSets and other jobs are suspended instead.
Sources: kueue pkg/controller/jobs/pod/pod_controller.go (Stop), pkg/controller/jobframework/reconciler.go (stopJob),
pkg/scheduler/preemption/preemption.go (preemptionMessage).
"""
_WORKLOAD_EVICTED: Final = "WorkloadEvicted"
_WORKLOAD_PREEMPTED: Final = "WorkloadEvictedDueToPreempted"
_PREEMPTED_TEXT: Final = "Preempted to accommodate"
_EVICTED: Final = "Evicted"
_PREEMPTED: Final = "Preempted"
_QUOTA_RESERVED: Final = "QuotaReserved"
_ADMITTED: Final = "Admitted"
_FINISHED: Final = "Finished"
_POD_CLASSES: Final = frozenset({"PriorityClass", "scheduling.k8s.io/priorityclass"})
_WORKLOAD_CLASSES: Final = frozenset({"WorkloadPriorityClass", "kueue.x-k8s.io/workloadpriorityclass"})
_MOST_PRIORITY: Final = 2**31
_UID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_TEXT: Final = re.compile(
    rf"Preempted to accommodate a workload \(UID: (?P<uid>{_UID})"
    rf"(?:, JobUID: (?:(?P<job>{_UID})|[^\s,()]{{1,128}}))?\) "
    r"due to (?P<words>[A-Za-z ]{1,100})(?:;|$)"
)
"""Reads a bounded number of characters, however long the message is."""


def queue_at_gate(gates: Iterable[str], labels: Mapping[str, str]) -> str:
    """The queue that holds back a pod with these gates, as answers call it; "" for none."""
    if not any(each.startswith(_GATE) for each in gates):
        return ""
    name = next((labels[key] for key in _QUEUES if labels.get(key)), "")
    return queue_words(name) if name else _NAME


def queue_words(queue: str) -> str:
    """A queue as answers call it: `Kueue, queue team-a`."""
    return f"{_NAME}, queue {queue}"


def workload_named(labels: Labels | None, annotations: Texts | None) -> str:
    """The name of the Workload that a pod names, "" for none."""
    return first_of(annotations, (_WORKLOAD,)) or first_of(labels, (_GROUP,))


def is_eviction(target: Condition) -> bool:
    """Whether a condition `TERMINATION_TARGET` is written by Kueue."""
    return (target.reason or "").startswith(_WORKLOAD_EVICTED)


def cause_of(target: Condition) -> Cause:
    """Why Kueue deletes a pod with this condition `TERMINATION_TARGET`."""
    is_preempted = target.reason == _WORKLOAD_PREEMPTED or (target.message or "").startswith(_PREEMPTED_TEXT)
    return Cause.QUEUE_PREEMPTION if is_preempted else Cause.QUEUE_EVICTION


def is_beyond_quota(waits: Condition) -> bool:
    """Whether the condition `QuotaReserved` says that no quota is large enough, however long the workload waits."""
    return waits.reason == _NEVER or _NEVER_TEXT in (waits.message or "")


def _stated_gang(_: Labels, annotations: Texts | None) -> StatedGang | None:
    """Source: kueue pkg/controller/jobs/pod/constants."""
    if annotations is None:
        return None
    if annotations.get(_SERVING) == "true":
        return "", NO_GANG
    size = pods_in(annotations, _GROUP_SIZE)
    return ("", size) if size else None


class PodSet(Camel, frozen=True):
    """Equal pods of a job."""

    template: PodTemplate = field(default_factory=PodTemplate)
    name: str = ""
    count: int = 0


class PriorityClassRef(Camel, frozen=True):
    """A PriorityClass, or a WorkloadPriorityClass of Kueue."""

    kind: str = ""
    name: str = ""


class KueueWorkloadSpec(Camel, frozen=True):
    """The pods, the local queue, whether the workload may be admitted, and its priority.

    v1beta1 has `priority_class_name` and `priority_class_source` in place of `priority_class_ref`.
    """

    pod_sets: tuple[PodSet, ...] | None = None
    queue_name: str = ""
    active: bool | None = None
    priority: int | None = None
    priority_class_ref: PriorityClassRef | None = None
    priority_class_name: str = ""
    priority_class_source: str = ""


class KueueWorkloadStatus(Camel, frozen=True):
    """Among others the conditions QuotaReserved, Admitted, Evicted and Finished."""

    conditions: tuple[Condition, ...] | None = None


class KueueWorkload(Object, frozen=True):
    """kueue.x-k8s.io Workload."""

    spec: KueueWorkloadSpec = field(default_factory=KueueWorkloadSpec)
    status: KueueWorkloadStatus = field(default_factory=KueueWorkloadStatus)

    @property
    def priority(self) -> int:
        """The priority of the Workload in queues; 0 without one, as for Kueue."""
        return min(max(self.spec.priority or 0, -_MOST_PRIORITY), _MOST_PRIORITY - 1)

    @property
    def pod_class(self) -> str:
        """The PriorityClass that its priority is from, which may be the default one; "" for none."""
        return self._class_of(_POD_CLASSES)

    @property
    def workload_class(self) -> str:
        """The WorkloadPriorityClass that its priority is from; "" for none."""
        return self._class_of(_WORKLOAD_CLASSES)

    def _class_of(self, kinds: frozenset[str]) -> str:
        spec, ref = self.spec, self.spec.priority_class_ref
        kind, name = (ref.kind, ref.name) if ref else (spec.priority_class_source, spec.priority_class_name)
        return name if kind in kinds else ""

    def condition(self, of_type: str) -> Condition | None:
        """The condition of that type, None without one."""
        return next((each for each in self.status.conditions or () if each.type == of_type), None)

    @property
    def eviction(self) -> tuple[Condition, Cause] | None:
        """The condition of its eviction, as long as it holds, and the cause."""
        evicted = self.condition(_EVICTED)
        if evicted is None or evicted.status != "True":
            return None
        return evicted, Cause.QUEUE_PREEMPTION if evicted.reason == _PREEMPTED else Cause.QUEUE_EVICTION

    @property
    def quota_reserved(self) -> Condition | None:
        """Whether its quota is reserved, since when, and why not."""
        return self.condition(_QUOTA_RESERVED)

    @property
    def ends_of_wait(self) -> list[Condition]:
        """The true conditions because of which it waits no longer: it was admitted or is over."""
        return [each for each in map(self.condition, (_ADMITTED, _FINISHED)) if each and each.status == "True"]

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for its admission; one that is not active waits for its user."""
        is_deleted = self.metadata.deletion_timestamp is not None
        return self.spec.active is not False and not is_deleted and not self.ends_of_wait


class QueueRule(StrEnum):
    """Why a queue may preempt one workload for another, by the reasons of Kueue's condition `Preempted`."""

    IN_CLUSTER_QUEUE = "InClusterQueue"
    IN_COHORT_RECLAMATION = "InCohortReclamation"
    IN_COHORT_FAIR_SHARING = "InCohortFairSharing"
    IN_COHORT_RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"


RULE_WORDS: Final[Mapping[str, str]] = {
    QueueRule.IN_CLUSTER_QUEUE: "prioritization in the ClusterQueue",
    QueueRule.IN_COHORT_RECLAMATION: "reclamation within the cohort",
    QueueRule.IN_COHORT_FAIR_SHARING: "Fair Sharing within the cohort",
    QueueRule.IN_COHORT_RECLAIM_WHILE_BORROWING: "reclamation within the cohort while borrowing",
}
"""What Kueue calls its rules in messages."""
_RULES: Final = {words: rule for rule, words in RULE_WORDS.items()}


def queue_preemptor_in(message: str | None) -> QueuePreemptor:
    """Whom the message names; nobody if it has another form.

    Older versions name no job and no paths. Source: kueue pkg/scheduler/preemption/preemption.go, preemptionMessage.
    """
    found = _TEXT.match(message or "")
    if found is None:
        return QueuePreemptor()
    return QueuePreemptor(found["uid"], _RULES.get(found["words"], ""), found["job"] or "")


KUEUE: Final = Framework(
    groups=(GroupLabels("KueuePodGroup", OnLoss.RESTART, (_GROUP,)),),
    queues=_QUEUES,
    states_gang=_stated_gang,
)
"""Source of what happens on a loss: kueue pkg/controller/jobframework."""

"""A preemption: victim, preemptor and the times of its steps."""

from msgspec import Struct


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


class Preemption(Struct, frozen=True, kw_only=True, gc=False):
    """The preemption of one victim: decided (condition set), requested (deletion), observed by us; times in µs.

    `quantity` is the victim's allocation in µGPU; `victim_priority` is None if it is not known. `counted` is the
    (victim tier, preemptor tier) under which it was counted, None while the preemptor may still become known;
    `forbidden` are those under which it is counted as one that the priorities do not permit.

    If a queue preempted the victim's workload for another one, `queue_rule` is its rule, "" for one that is not known;
    None if the scheduler did. Priorities are those of both workloads then. `preemptor_pods` are the pods of that
    workload on the node, by UID.
    """

    victim_uid: str
    victim_namespace: str
    victim_name: str
    victim_priority: int | None = None
    victim_class: str = ""
    victim_tier: str
    victim_tenant: str
    node: str
    quantity: int
    decided_us: int
    requested_us: int | None
    released_us: int | None = None
    noticed_us: int
    preemptor: Preemptor | None = None
    counted: tuple[str, str] | None = None
    forbidden: tuple[str, str] | None = None
    queue_rule: str | None = None
    preemptor_pods: tuple[str, ...] = ()

    @property
    def is_permitted(self) -> bool:
        """Whether the priorities permit it: the preemptor's is higher, and its policy is not Never.

        True while the preemptor is not known, and of a queue, which has rules of its own.

        Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
        isPreemptionAllowed and PodEligibleToPreemptOthers.
        """
        by = self.preemptor
        if self.queue_rule is not None or by is None or by.priority is None or self.victim_priority is None:
            return True
        return by.may_preempt and by.priority > self.victim_priority

"""Why a pod waits for GPUs: one verdict with the obstacles that explain it, and pods that should not precede it."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

MEMBERS: Final = "members"
"""Ends the `what` of a gang's obstacle if too few members exist; without it, too few fit at once."""


class Reason(StrEnum):
    """Why a pod waits; the verdict is the first one that applies, in this order.

    A node *accepts* a pod if it is large enough, and no taint, cordon, selector or affinity keeps the pod away. A pod
    has *available* what is free and, if it may preempt, what pods of lower priority have.
    """

    NO_SCHEDULER = "no_scheduler"
    """No scheduler of that name has bound a pod or reported on one."""
    QUEUED = "queued"
    """A queue system, such as Kueue, has not admitted its workload."""
    GATED = "gated"
    """The pod has scheduling gates."""
    QUOTA_NEVER = "quota_never"
    """The pod requests more than its quota can ever admit."""
    QUOTA = "quota"
    """The pod's quota is used up, so that it cannot be created."""
    REFUSED = "refused"
    """The API server refuses to create it: an admission policy or webhook, a LimitRange, a missing ServiceAccount.

    Pods that a quota or admission refuses do not exist: the verdict is that of the workload that lacks them.
    """
    CLAIM = "claim"
    """A ResourceClaim is not allocated."""
    GANG = "gang"
    """The pod's gang is incomplete: too few members exist, or it fits and not all of them do at once."""
    EXCLUDED = "excluded"
    """Taints, cordons, selectors or affinity exclude it from all nodes that are large enough."""
    IMPOSSIBLE = "impossible"
    """No node is large enough, even if it were empty."""
    UNKNOWN = "not_yet_known"
    """What other pods take is not complete yet; the reasons below, except those about GPUs alone, need it."""
    OTHER = "other"
    """The pod fits, but the scheduler names something that is not modelled, such as volumes or affinity between pods.

    Pods with shares of GPUs, which their own schedulers place, have no other verdict about nodes.
    """
    SCHEDULABLE = "schedulable"
    """The pod fits on a node, and the scheduler has not bound it yet."""
    VICTIMS_STOPPING = "victims_stopping"
    """Pods are stopping on a node, and it fits there as soon as they have."""
    PREEMPTING = "preempting"
    """The pod fits if pods of lower priority are preempted, which the scheduler has not done yet."""
    OTHER_RESOURCE = "cpu_or_memory"
    """A node that accepts it has enough GPUs available, but not CPU, memory, ephemeral storage or pods."""
    NEVER_PREEMPTS = "never_preempts"
    """The pod would fit if it preempted pods of lower priority, but its preemptionPolicy is Never."""
    INVERSION = "inversion"
    """The pod serves users; pods that do not, at its own or a higher priority, hold what it needs."""
    FRAGMENTED = "fragmented"
    """The nodes that accept it have enough GPUs available together, but no single one has."""
    CAPACITY = "capacity"
    """Pods of its own or of higher priority hold what it needs."""


class ObstacleKind(StrEnum):
    """What keeps a pod from a node, or from all. An obstacle is gone when ..."""

    TAINT = "taint"
    """... the node loses the taint, or the pod tolerates it."""
    CORDON = "cordon"
    """... the node is uncordoned."""
    SELECTOR = "selector"
    """... the node has the label, or the pod does not require it in its selector or affinity."""
    SIZE = "size"
    """... such a node offers `needed`, or the pod requests no more than `free`, which it offers.

    Without a node, none offers it at all, and it is gone when a node that accepts the pod does.
    """
    RESOURCE = "resource"
    """... `pods` are gone, which hold it."""
    POLICY = "policy"
    """... the pod may preempt pods of lower priority."""
    GATE = "gate"
    """... the gate is removed."""
    QUEUE = "queue"
    """... the queue system admits the workload."""
    QUOTA = "quota"
    """... the quota admits the pod: `needed` more than the `free` ones of it."""
    CLAIM = "claim"
    """... the claim is allocated."""
    GANG = "gang"
    """... `needed` of its members fit at once, or exist, instead of `free`."""
    SCHEDULER = "scheduler"
    """... a scheduler of that name runs."""
    UNMODELLED = "unmodelled"
    """... the scheduler no longer says `what`."""


class Obstacle(Struct, frozen=True, kw_only=True, gc=False):
    """One obstacle. On `node`, or "" if it concerns all nodes.

    `what` names it: a taint, a requirement, a resource, a gate, a quota. Of a resource, the pod needs `needed`, and
    `free` are available to it; `pods` are UIDs of pods that hold it, of which all must go for the pod to fit.
    """

    kind: ObstacleKind
    what: str = ""
    node: str = ""
    needed: int | None = None
    free: int | None = None
    pods: tuple[str, ...] = ()


class Verdict(Struct, frozen=True, kw_only=True, gc=False):
    """Why a pod waits. `obstacles` are a minimal set: without all of them it would be bound, with any one it would not.

    `node` is the node to which they refer, or on which pods would be preempted or are stopping; "" if none is, as for a
    pod that fits: only the scheduler chooses among the nodes.
    `victims` are the pods that stop there, or those that it would preempt. `counts` says how many nodes with GPUs have
    which kind of obstacle, for a summary; it is empty if the pod fits.
    """

    reason: Reason
    obstacles: tuple[Obstacle, ...] = ()
    node: str = ""
    victims: tuple[str, ...] = ()
    counts: tuple[tuple[ObstacleKind, int], ...] = ()


class Eviction(Struct, frozen=True, kw_only=True, gc=False):
    """A preemption: the `victims` on `node` by UID, most important first.

    `violating` are those that a PodDisruptionBudget does not allow to go, with its namespace and name.
    """

    node: str
    victims: tuple[str, ...]
    violating: tuple[tuple[str, str], ...] = ()


class FindingKind(StrEnum):
    """What is wrong with the order."""

    INVERSION = "inversion"
    """Pods that do not serve users, at its own or a higher priority, hold what a serving pod needs."""
    STARVATION = "starvation"
    """Pods of lower priority run on nodes that accept it, were bound after it began to wait, and it cannot preempt."""
    OUTRANKED = "outranked"
    """Pods of lower priority run on nodes that accept it; it cannot preempt them, by policy or on no single node."""


class PriorityFinding(Struct, frozen=True, kw_only=True, gc=False):
    """A waiting class of pods, and the `pods` by UID that run where it could; at most a stated number of them.

    `gpus` is the number of GPU devices that all of them hold. Of `STARVATION`, `latest_us` is the latest start of one.
    """

    kind: FindingKind
    pods: tuple[str, ...]
    gpus: int
    latest_us: int | None = None

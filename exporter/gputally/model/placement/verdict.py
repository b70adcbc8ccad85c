"""Why a pod waits for GPUs: one verdict, with the obstacles that suffice to explain it."""

from enum import StrEnum

from msgspec import Struct


class Reason(StrEnum):
    """Why a pod waits; the verdict is the first one that applies, in this order."""

    UNKNOWN = "not_yet_known"
    """What other pods take is not complete yet."""
    NO_SCHEDULER = "no_scheduler"
    """No scheduler of that name has bound a pod or reported on one."""
    GATED = "gated"
    """It has scheduling gates."""
    QUEUED = "queued"
    """A queue system, such as Kueue, has not admitted its workload."""
    QUOTA_NEVER = "quota_never"
    """It requests more than its quota can ever admit."""
    QUOTA = "quota"
    """Its quota is used up, so that its pods cannot be created."""
    CLAIM = "claim"
    """A ResourceClaim is not allocated."""
    GANG = "gang"
    """Its gang is incomplete: too few members exist, or not all fit at once."""
    VICTIMS_STOPPING = "victims_stopping"
    """Room is made for it: victims of a preemption are stopping on its node."""
    EXCLUDED = "excluded"
    """Taints, cordons, selectors or affinity exclude it from all nodes that would be large enough."""
    IMPOSSIBLE = "impossible"
    """It fits on no node, even if that were empty."""
    OTHER_RESOURCE = "cpu_or_memory"
    """Enough GPUs are free on a node that it accepts, but not CPU, memory, ephemeral storage or pods."""
    FRAGMENTED = "fragmented"
    """The nodes that it accepts have enough free GPUs together, but no single one has."""
    INVERSION = "inversion"
    """It serves users, and pods of tiers that do not hold what it needs, at its own or a higher priority."""
    NEVER_PREEMPTS = "never_preempts"
    """Pods of lower priority hold what it needs, but its preemptionPolicy is Never."""
    CAPACITY = "capacity"
    """Pods of its own or of higher priority hold what it needs."""
    PREEMPTING = "preempting"
    """It may preempt pods of lower priority, and the scheduler has not done so yet."""
    SCHEDULABLE = "schedulable"
    """It fits on a node, and the scheduler has not bound it yet."""
    OTHER = "other"
    """The scheduler names something that is not modelled, such as volumes or affinity between pods."""


class ObstacleKind(StrEnum):
    """What keeps a pod from a node, or from all."""

    TAINT = "taint"
    CORDON = "cordon"
    SELECTOR = "selector"
    """The node's labels do not match its node selector or affinity."""
    RESOURCE = "resource"
    """Other pods hold it."""
    SIZE = "size"
    """The node is too small."""
    GATE = "gate"
    QUOTA = "quota"
    CLAIM = "claim"
    GANG = "gang"
    SCHEDULER = "scheduler"
    POLICY = "policy"
    """Its preemptionPolicy is Never."""


class Obstacle(Struct, frozen=True, kw_only=True, gc=False):
    """One obstacle. On `node`, or "" if it concerns all nodes.

    `what` names it: a taint, a requirement, a resource, a gate, a quota. Of a resource, the pod needs `needed`, and
    `free` are free; `pods` are UIDs of pods that hold it, of which all must go for the pod to fit.
    """

    kind: ObstacleKind
    what: str = ""
    node: str = ""
    needed: int | None = None
    free: int | None = None
    pods: tuple[str, ...] = ()


class Verdict(Struct, frozen=True, kw_only=True, gc=False):
    """Why a pod waits. `obstacles` are a minimal set: without all of them it would be bound, with any one it would not.

    `node` is the node to which they refer, "" if none is. `victims` are pods that it may preempt there, or that are
    stopping for it. `counts` says how many nodes with GPUs have which kind of obstacle, for a summary.
    """

    reason: Reason
    obstacles: tuple[Obstacle, ...] = ()
    node: str = ""
    victims: tuple[str, ...] = ()
    counts: tuple[tuple[ObstacleKind, int], ...] = ()

"""What decides where a pod may run: its needs, the nodes, and its circumstances such as its gang and its quota."""

from typing import Final

from msgspec import Struct

from gputally.model.kube.pods import NodeSelectorTerm, Toleration
from gputally.model.price import Asset

SHARES: Final = "shares of GPUs"
"""Pods with shares of GPUs are placed by schedulers of their own, by rules of their own."""
TOO_MANY: Final = "too many tolerations or requirements"
"""More than anyone writes; they are left out."""

Amounts = tuple[tuple[str, int], ...]
"""Integers by resource, sorted: CPU in millicores, memory and storage in bytes, `pods` 1 for each pod, else devices."""


class Needs(Struct, frozen=True, kw_only=True, cache_hash=True, weakref=True):
    """What decides where a pod may run. Pods with equal needs are a class: they have one verdict.

    `amounts` are its effective requests with `pods`; those named in `gpus` are GPUs or shares of them. `node_terms` are
    the terms of its required node affinity, of which one must match; None without any. `gates` are the names of its
    scheduling gates, `claims` those of its ResourceClaims. `unmodelled` names what else restricts it, such as
    `pod affinity`: only the scheduler knows its effect.
    """

    namespace: str
    amounts: Amounts
    gpus: tuple[str, ...] = ()
    priority: int = 0
    may_preempt: bool = True
    class_name: str = ""
    scheduler: str = "default-scheduler"
    node_selector: tuple[tuple[str, str], ...] = ()
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    gates: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    unmodelled: tuple[str, ...] = ()


class Taken(Struct, frozen=True, gc=False):
    """What a bound pod takes from its node, by `priority`. Thousands of pods share the tuple `amounts`.

    `is_serving` says whether its tier serves users, `started_us` when its kubelet acknowledged it, None before.
    """

    amounts: Amounts
    priority: int
    is_serving: bool = False
    started_us: int | None = None

    def of(self, resource: str) -> int:
        """How much of one resource it takes."""
        for name, amount in self.amounts:
            if name == resource:
                return amount
        return 0


class Taint(Struct, frozen=True, gc=False):
    """A taint; `effect` is NoSchedule, NoExecute or PreferNoSchedule, of which the last one keeps no pod away."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Place(Struct, frozen=True, kw_only=True, gc=False):
    """A node with GPUs, as the scheduler sees it. `offered` are the allocatable amounts of all resources.

    `asset` is what its price depends on, None if that is not known.
    """

    uid: str
    name: str
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    offered: Amounts = ()
    is_cordoned: bool = False
    asset: Asset | None = None


class TaskState(Struct, frozen=True, gc=False):
    """A task of a gang with a minimum of its own: `least` of its pods must run.

    `members` of them exist, of which `bound` hold resources. `waiting` are the needs of the others and their number.
    """

    name: str
    least: int
    members: int
    bound: int
    waiting: tuple[tuple[Needs, int], ...] = ()


class GangState(Struct, frozen=True, kw_only=True, gc=False, cache_hash=True):
    """The gang of a waiting pod, which its scheduler binds at once: `least` pods of it must run.

    `members` of them exist, of which `bound` hold resources. `waiting` are the needs of the others and their number; by
    default, they are like the pod's own. `is_mixed` says that they differ in more ways than are told apart, so that
    nobody knows whether they fit at once. `tasks` are those with a minimum of their own.
    """

    name: str
    least: int
    members: int
    bound: int = 0
    waiting: tuple[tuple[Needs, int], ...] = ()
    is_mixed: bool = False
    tasks: tuple[TaskState, ...] = ()


class QuotaState(Struct, frozen=True, kw_only=True, gc=False):
    """A quota that refuses the pod: of `what`, it admits `hard`, of which `used` are used; the pod needs `needed`."""

    name: str
    what: str
    hard: int
    used: int
    needed: int


class Situation(Struct, frozen=True, kw_only=True, gc=False):
    """The circumstances of a waiting pod. `text` is the scheduler's message in its condition PodScheduled.

    `uid` is needed of a nominated pod, whose own nomination takes nothing from it, else "". `has_scheduler` says
    whether its scheduler was ever seen to work. `gang` is given only if a scheduler waits for the whole gang.
    `nominated_node` is where room is made for it. `open_claims` are its ResourceClaims without an allocation; `queue`
    says what its queue system waits for. `is_serving` says whether its tier serves users.
    """

    uid: str = ""
    has_scheduler: bool = True
    gang: GangState | None = None
    quota: QuotaState | None = None
    queue: str = ""
    open_claims: tuple[str, ...] = ()
    nominated_node: str = ""
    text: str = ""
    is_serving: bool = False

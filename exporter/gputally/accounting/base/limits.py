"""How many objects of each kind, and documents of each part, are kept: whoever may create objects has a share of it.

docs/limits.md is the table of all of them.
"""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from gputally.model.kube.meta import Kind

SELECTOR_CHARACTERS: Final = 4_096
"""Most characters of the keys and values of a label selector, or of the scopes of a quota; longer ones are not kept."""


class Limit(Struct, frozen=True):
    """How many are kept of one namespace, and of all; None without a limit."""

    in_namespace: int | None = None
    in_all: int | None = None

    @property
    def most(self) -> int:
        """How many are kept of all. Raises: ValueError if there is no limit."""
        if self.in_all is None:
            raise ValueError("there is no limit of all")
        return self.in_all


NONE: Final = Limit()
_GROUPS: Final = Limit(5_000, 50_000)

KEPT: Final[Mapping[Kind, Limit]] = {
    Kind.PODS: NONE,
    Kind.NODES: NONE,
    Kind.NAMESPACES: NONE,
    Kind.PRIORITY_CLASSES: NONE,
    Kind.EVENTS: Limit(None, 10_000),
    Kind.KARPENTER_EVENTS: NONE,
    Kind.NODE_TERMINATION_EVENTS: NONE,
    Kind.JOBS: Limit(5_000, 20_000),
    Kind.DISRUPTION_BUDGETS: Limit(500, 10_000),
    Kind.QUOTAS: Limit(100, 10_000),
    Kind.FAILED_CREATES: Limit(None, 2_000),
    Kind.KUEUE_WORKLOADS: Limit(5_000, 20_000),
    Kind.VOLCANO_GROUPS: _GROUPS,
    Kind.COSCHEDULING_GROUPS: _GROUPS,
    Kind.CORE_GROUPS: _GROUPS,
}
"""By watched kind. Of Workloads it counts the pod sets that wait; of Jobs those without pods, and those that wait."""
STORED: Final[Mapping[str, Limit]] = {
    "agent": NONE,
    "asked-size": Limit(None, 256),
    "checkpoint": NONE,
    "claim-pod": NONE,
    "class-version": NONE,
    "container_restart": NONE,
    "disruption": NONE,
    "gangs": NONE,
    "job": KEPT[Kind.JOBS],
    "job-cost": Limit(None, 10_000),
    "lost-work": NONE,
    "most_capacity": Limit(None, 256),
    "node_signal": NONE,
    "possible_preemptor": Limit(None, 20_000),
    "preempted_job": Limit(None, 10_000),
    "preemption": NONE,
    "progress": NONE,
    "queue_eviction": Limit(5_000, 20_000),
    "unaccounted-day": Limit(None, 20_000),
    "uncreated_waits": Limit(12_000, 42_000),
    "unknown-offer": NONE,
    "waiting": NONE,
}
"""By the name of the part whose documents ledgers store; waits of workloads are those of three kinds together."""


class LimitOverflow(Struct, frozen=True):
    """How often something was not kept because of a limit, and the last namespace of which it was not."""

    count: int = 0
    namespace: str = ""

    def plus_one(self, namespace: str) -> "LimitOverflow":
        """One more, of this namespace."""
        return LimitOverflow(self.count + 1, namespace)


class NamespaceLimit:
    """Which keys are kept within a limit; `overflow` counts, each time, those that are not.

    A namespace cannot displace keys of one with fewer: at its own limit, its new ones are not kept. At the limit of
    all, the namespace with most keys loses its latest, and `drop` is called for it, unless the new one would have as
    many.
    """

    def __init__(self, limit: Limit, drop: Callable[[str, str], None]) -> None:
        self.overflow = LimitOverflow()
        self._limit = limit
        self._drop = drop
        self._kept: dict[str, dict[str, None]] = {}
        self._count = 0

    def put(self, namespace: str, key: str) -> bool:
        """Whether the key is kept, now or already."""
        own = self._kept.get(namespace, {})
        if key in own:
            return True
        if self._limit.in_namespace is not None and len(own) >= self._limit.in_namespace:
            self.refuse(namespace)
            return False
        if self._limit.in_all is not None and self._count >= self._limit.in_all:
            fullest = max(self._kept, key=lambda each: len(self._kept[each]))
            if len(own) + 1 >= len(self._kept[fullest]):
                self.refuse(namespace)
                return False
            self.refuse(fullest)
            last = next(reversed(self._kept[fullest]))
            self.remove(fullest, last)
            self._drop(fullest, last)
        self._kept.setdefault(namespace, {})[key] = None
        self._count += 1
        return True

    def refuse(self, namespace: str) -> None:
        """Count an object of the namespace that is not kept."""
        self.overflow = self.overflow.plus_one(namespace)

    def remove(self, namespace: str, key: str) -> None:
        """The key is not kept any more, if it was."""
        own = self._kept.get(namespace, {})
        if key in own:
            del own[key]
            self._count -= 1
            if not own:
                del self._kept[namespace]

"""The kinds that are watched: their names, and how many objects of each are kept.

Whoever may create objects may create many, so the kinds that tenants create have a limit. docs/limits.md has the table.
"""

from enum import StrEnum
from typing import Final, Self

from msgspec import Struct


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


NO_LIMIT: Final = Limit()
_GROUPS: Final = Limit(5_000, 50_000)


class Kind(StrEnum):
    """The resources we watch, by the plural name the API uses; Events also by reason, others also by group.

    `limit` says how many objects are kept: of Workloads it counts the pod sets that wait; of Jobs those without pods,
    and those that wait. A kind that is `on_request` is watched only if the configuration names it.
    """

    limit: Limit
    on_request: bool

    def __new__(cls, name: str, limit: Limit = NO_LIMIT, on_request: bool = False) -> Self:  # noqa: FBT001,FBT002  an enum passes what a member states by position
        """A kind with its properties, which are no part of its value."""
        kind = str.__new__(cls, name)
        kind._value_ = name
        kind.limit = limit
        kind.on_request = on_request
        return kind

    PODS = "pods"
    NODES = "nodes"
    NAMESPACES = "namespaces"
    PRIORITY_CLASSES = "priorityclasses"
    EVENTS = "events", Limit(None, 10_000)
    KARPENTER_EVENTS = "events/SpotInterrupted"
    NODE_TERMINATION_EVENTS = "events/SpotInterruption"
    JOBS = "jobs", Limit(5_000, 20_000)
    DISRUPTION_BUDGETS = "poddisruptionbudgets", Limit(500, 10_000), True
    QUOTAS = "resourcequotas", Limit(100, 10_000), True
    FAILED_CREATES = "events/FailedCreate", Limit(None, 2_000), True
    KUEUE_WORKLOADS = "workloads.kueue.x-k8s.io", Limit(5_000, 20_000), True
    VOLCANO_GROUPS = "podgroups.scheduling.volcano.sh", _GROUPS, True
    COSCHEDULING_GROUPS = "podgroups.scheduling.x-k8s.io", _GROUPS, True
    CORE_GROUPS = "podgroups.scheduling.k8s.io", _GROUPS, True


OPTIONAL_RESOURCES: Final = tuple(kind.value for kind in Kind if kind.on_request)
"""Resources that are watched only on request; Events by reason, those of other projects by group."""

"""Gangs of which some pods hold GPUs and wait for the others."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class NotCompared(StrEnum):
    """Why a partial gang is not compared with others, to find those that wait for each other."""

    UNKNOWN = "unknown"
    """The gang waits for pods that do not exist, whose requests are not known, or that differ too much."""
    LIMIT = "limit"
    """Enough older gangs of its tenant, or of all tenants, are compared."""


class TaskShort(Struct, frozen=True, gc=False):
    """A task of a gang, of which `bound` pods hold GPUs, and `needed` must."""

    name: str
    bound: int
    needed: int


class PartialGang(Struct, frozen=True, kw_only=True, gc=False):
    """A gang of which `bound` of `needed` pods hold `quantity` µGPU, since `since_us`, when the first one was bound.

    `kind` is that of its framework. `pods` are the UIDs of the pods that hold GPUs, `pending` of those that wait for
    them; others may not exist. `tasks` are those with a minimum of their own that lack pods. `tier` is exported,
    `tenant` is complete; both are those of one of the pods.
    """

    key: str
    kind: str
    namespace: str
    name: str
    tier: str
    tenant: str
    bound: int
    needed: int
    quantity: int
    since_us: int
    pods: tuple[str, ...]
    pending: tuple[str, ...]
    tasks: tuple[TaskShort, ...] = ()

    @property
    def missing(self) -> int:
        """Pods that it waits for."""
        return self.needed - self.bound


class PartialSum(Struct, frozen=True, gc=False):
    """The partial gangs of one tier: their number, the µGPU that they hold, and since when the first one does."""

    gangs: int
    quantity: int
    oldest_us: int

    def with_gang(self, gang: PartialGang) -> "PartialSum":
        """The sum with one more."""
        return PartialSum(self.gangs + 1, self.quantity + gang.quantity, min(self.oldest_us, gang.since_us))


class PartialNow(Struct, frozen=True, gc=False):
    """The partial gangs by exported tier, how many of them wait for each other, and how many were not compared."""

    sums: Mapping[str, PartialSum] = {}
    deadlocked: int = 0
    not_compared: Mapping[NotCompared, int] = {}

"""Findings about the order of priorities in a cluster."""

from enum import StrEnum

from msgspec import Struct


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

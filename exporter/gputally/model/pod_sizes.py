"""What pod sizes fit now, and why free GPUs are stranded."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

SIZES: Final = (1, 2, 4, 8)
"""Pods of so many GPUs are counted."""


class Stranded(StrEnum):
    """Why nothing that waits, or has run in the last week, could use a free GPU."""

    CORDON = "cordon"
    NOT_READY = "not_ready"
    """The node is not ready, lacks memory or disk, or is being removed, as taints say that no pod tolerates."""
    CPU = "cpu"
    MEMORY = "memory"
    PODS = "pods"
    """CPU, memory or pods are too scarce on its node, even for a pod of one GPU."""
    FRAGMENT = "fragment"
    """Too few are free beside it for any pod that waits, or has run in the last week."""


class AskedSize(Struct, frozen=True, kw_only=True, gc=False):
    """Pods with so many `gpus` of a `resource` have run on nodes of the model; `at_us` is when, to the hour."""

    gpu_model: str
    resource: str
    gpus: int
    at_us: int


class Capacity(Struct, frozen=True, kw_only=True, gc=False):
    """What fits on a node, or on several together.

    `fits` says how many pods of each of SIZES fit at once, `free` how many GPU devices are free, and `stranded` how
    many of these nothing could use that is known, by the reason.
    """

    fits: tuple[int, ...] = (0,) * len(SIZES)
    free: int = 0
    stranded: tuple[tuple[Stranded, int], ...] = ()

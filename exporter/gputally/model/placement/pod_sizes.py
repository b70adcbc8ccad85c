"""What pod sizes fit now, and why free GPUs are stranded."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

SIZES: Final = (1, 2, 4, 8)
"""Pods of so many GPUs are counted."""


class Stranded(StrEnum):
    """Why a free GPU is not available to all pods."""

    CORDON = "cordon"
    NOT_READY = "not_ready"
    """Its node is not ready, lacks memory or disk, or is being removed, as taints say that no pod tolerates."""
    CPU = "cpu"
    MEMORY = "memory"
    PODS = "pods"
    """These are too scarce on its node, even for a pod of one GPU."""
    FRAGMENT = "fragment"
    """Pods of one GPU can have it, but not one of the largest size in SIZES for which the node has GPUs."""


class Capacity(Struct, frozen=True, kw_only=True, gc=False):
    """What fits on a node, or on several together.

    `fits` says how many pods of each of SIZES fit at once, `free` how many GPU devices are free, and `stranded` how
    many of these are not available to all pods, by the reason.
    """

    fits: tuple[int, ...] = (0,) * len(SIZES)
    free: int = 0
    stranded: tuple[tuple[Stranded, int], ...] = ()

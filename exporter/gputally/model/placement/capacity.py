"""What pod sizes fit now, and why free GPUs are stranded."""

from enum import StrEnum

from msgspec import Struct

SIZES = (1, 2, 4, 8)
"""Pods of so many GPUs are counted."""


class Stranded(StrEnum):
    """Why a free GPU is not available to a pod of one, or of its node's, GPUs."""

    CPU = "cpu"
    MEMORY = "memory"
    PODS = "pods"
    CORDON = "cordon"
    FRAGMENT = "fragment"
    """It is free, but too few others are free on its node for a pod of the largest size that the node could run."""


class NodeCapacity(Struct, frozen=True, kw_only=True, gc=False):
    """A node's answer, which depends on that node alone.

    `fits` says how many pods of each of SIZES fit, `free` how many GPU devices are free, and `stranded` why how many of
    them are not available.
    """

    fits: tuple[int, ...]
    free: int
    stranded: tuple[tuple[Stranded, int], ...] = ()

"""The response of `/api/v1/fits`: what pod sizes fit now, and which free GPUs are stranded."""

from datetime import datetime
from typing import Final

from msgspec import Struct

FITS_VERSION: Final = 1
"""Raised when a field is removed or changes its meaning; new fields do not change it."""


class PoolFits(Struct, frozen=True, kw_only=True, gc=False):
    """The nodes of one GPU model and pool, with so many `free` GPU devices.

    `fits` says how many pods fit at once, by the GPUs of each; each size is counted by itself. `stranded` are the GPUs
    among those free that nothing could use that waits or has run in the last week, by the reason (see `Stranded`).
    `pool` is None for a user who is restricted to tenants.
    """

    gpu_model: str
    pool: str | None
    free: int
    fits: dict[int, int]
    stranded: dict[str, int]


class FitsDocument(Struct, frozen=True, kw_only=True):
    """The state at one instant, those with the most free GPUs first.

    Pods have `cpu_cores` and `memory_bytes` for each of their GPUs. Without `is_complete`, the pods on the nodes are
    still being listed, and `pools` is empty.
    """

    version: int = FITS_VERSION
    at: datetime
    cpu_cores: float
    memory_bytes: int
    is_complete: bool
    pools: list[PoolFits]

"""The GPUs that quotas allow, and those that are requested."""

from msgspec import Struct


class QuotaUse(Struct, frozen=True):
    """GPUs in µGPU; `used` is None while the quota controller has not counted them."""

    hard: int
    used: int | None

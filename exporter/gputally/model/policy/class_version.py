"""A PriorityClass as it was for a time."""

from msgspec import Struct


class ClassVersion(Struct, frozen=True, kw_only=True, gc=False):
    """What a class said from `from_us` to `to_us` (µs); None while that lasts.

    Value and policy of a class never change: another value is a new object of the same name. The default may change.
    """

    name: str
    uid: str
    value: int
    preemption_policy: str
    is_default: bool
    from_us: int
    to_us: int | None = None

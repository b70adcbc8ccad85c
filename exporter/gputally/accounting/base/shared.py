"""Shares one object among equal values: thousands of pods decode to the same values, each as a separate copy."""

from collections.abc import Hashable
from functools import lru_cache
from typing import TypeVar

from msgspec.structs import replace

from gputally.model.kube.meta import OwnerReference

Value = TypeVar("Value", bound=Hashable)


@lru_cache(maxsize=4096)
def shared(value: Value) -> Value:
    """The first object that equals `value`."""
    return value


def shared_owner(owner: OwnerReference | None) -> OwnerReference | None:
    """The first owner that equals this one; different owners share the words of their kind."""
    if owner is None:
        return None
    found: OwnerReference = shared(replace(owner, kind=shared(owner.kind), api_version=shared(owner.api_version)))
    return found

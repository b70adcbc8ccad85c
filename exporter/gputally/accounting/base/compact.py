"""Keeps thousands of pods small in memory: equal values share one object, and a few UIDs are a tuple.

Equal values are decoded as a separate copy for each pod. Most collections of UIDs have one member, and a tuple costs a
fifth of a set.
"""

from collections.abc import Collection, Hashable
from functools import lru_cache
from typing import Final, TypeVar

from msgspec.structs import replace

from gputally.model.kube.meta import OwnerReference

Value = TypeVar("Value", bound=Hashable)
_FEW: Final = 8


@lru_cache(maxsize=4096)
def shared(value: Value) -> Value:
    """The first object that equals `value`."""
    return value


@lru_cache(maxsize=4096)
def shared_owner(owner: OwnerReference | None) -> OwnerReference | None:
    """The first owner that equals this one; different owners share the words of their kind."""
    return replace(owner, kind=shared(owner.kind), api_version=shared(owner.api_version)) if owner else None


def with_uid(uids: Collection[str], uid: str) -> Collection[str]:
    """`uids` with `uid`, as a tuple while they are few; else the same set, changed."""
    if not uids:
        return _alone(uid)
    if uid in uids:
        return uids
    if isinstance(uids, set):
        uids.add(uid)
        return uids
    return (*uids, uid) if len(uids) < _FEW else {*uids, uid}


def without_uid(uids: Collection[str], uid: str) -> Collection[str]:
    """`uids` without `uid`."""
    if isinstance(uids, set):
        uids.discard(uid)
        return uids
    if uid not in uids:
        return uids
    few = tuple(uids)
    index = few.index(uid)
    return few[:index] + few[index + 1 :]


@lru_cache(maxsize=4096)
def _alone(uid: str) -> tuple[str]:
    """One tuple for all collections that a new pod enters."""
    return (uid,)

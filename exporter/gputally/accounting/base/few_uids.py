"""Collections of UIDs of which most have one member: a tuple costs a fifth of a set, and there are thousands."""

from collections.abc import Collection
from functools import lru_cache
from typing import Final

_FEW: Final = 8


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
    return tuple([each for each in uids if each != uid]) if uid in uids else uids


@lru_cache(maxsize=4096)
def _alone(uid: str) -> tuple[str]:
    """One tuple for all collections that a new pod enters."""
    return (uid,)

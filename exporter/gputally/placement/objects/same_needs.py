"""Pods with equal needs share one object, which is gone with the last of them."""

from typing import Final
from weakref import WeakKeyDictionary, ref

from msgspec.structs import replace

from gputally.model.placement.needs import Needs

_SAME: Final[WeakKeyDictionary[Needs, ref[Needs]]] = WeakKeyDictionary()
_IMPERSONAL: Final[WeakKeyDictionary[Needs, Needs]] = WeakKeyDictionary()


def same(needs: Needs) -> Needs:
    """The first object that equals `needs`, of those that somebody keeps."""
    if (known := _SAME.get(needs)) and (found := known()):
        return found
    if (base := impersonal(needs)) is not needs:
        needs = replace(base, namespace=needs.namespace, class_name=needs.class_name)  # shares its parts
        _IMPERSONAL[needs] = base
    _SAME[needs] = ref(needs)
    return needs


def impersonal(needs: Needs) -> Needs:
    """Without the names that decide nothing about nodes, so that pods of all namespaces and classes share a verdict."""
    if not (needs.namespace or needs.class_name):
        return needs
    return _IMPERSONAL.get(needs) or same(replace(needs, namespace="", class_name=""))


def kept() -> int:
    """How many different needs are kept."""
    return len(_SAME)

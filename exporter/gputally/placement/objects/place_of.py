"""What a node offers."""

from functools import lru_cache

from gputally.errors import MalformedObject
from gputally.model.kube import Node
from gputally.model.placement.needs import Amounts, Place, Taint
from gputally.placement.objects.quantity import amount_of


def place_of(node: Node) -> Place:
    """`node` as the scheduler sees it. Raises: MalformedObject for an invalid quantity."""
    try:
        offered = sorted((name, amount_of(name, each)) for name, each in (node.status.allocatable or {}).items())
    except ValueError as error:
        raise MalformedObject(node.metadata.uid, str(error)) from None
    return Place(
        uid=node.metadata.uid,
        name=node.metadata.name,
        labels=tuple([_label(*label) for label in sorted((node.metadata.labels or {}).items())]),
        taints=tuple([_taint(taint.key, taint.value, taint.effect) for taint in node.spec.taints or ()]),
        offered=_amounts(tuple(offered)),
        is_cordoned=bool(node.spec.unschedulable),
    )


@lru_cache(maxsize=16384)
def _label(key: str, value: str) -> tuple[str, str]:
    """Equal labels of thousands of nodes are one object."""
    return key, value


@lru_cache(maxsize=1024)
def _taint(key: str, value: str, effect: str) -> Taint:
    return Taint(key, value, effect)


@lru_cache(maxsize=4096)
def _amounts(offered: Amounts) -> Amounts:
    return offered

"""A change of a node that affects its pods."""

from collections.abc import Iterable
from typing import NamedTuple


class Reclassified(NamedTuple):
    """Classification or price of the pods on node `uid`, called `name`, differ from `since_us` on."""

    uid: str
    name: str
    since_us: int


def as_one(changed: Iterable[Reclassified | None]) -> Reclassified | None:
    """Merge several changes; the last one is of the node itself, or of one that it continues."""
    found = [each for each in changed if each]
    return found[-1]._replace(since_us=min(each.since_us for each in found)) if found else None

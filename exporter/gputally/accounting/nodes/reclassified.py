"""What changed of a node for its pods."""

from collections.abc import Iterable
from typing import NamedTuple


class Reclassified(NamedTuple):
    """The pods of node `uid`, called `name`, are or cost something else from `since_us` on than was thought."""

    uid: str
    name: str
    since_us: int


def as_one(changed: Iterable[Reclassified | None]) -> Reclassified | None:
    """All these as one: the last is that of the node itself, or of one that it continues."""
    found = [each for each in changed if each]
    return found[-1]._replace(since_us=min(each.since_us for each in found)) if found else None

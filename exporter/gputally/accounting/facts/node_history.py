"""The history of a node's facts, across incarnations that continue each other, and what it changes for pods."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from msgspec.structs import replace

from gputally.model.node_record import NodeFacts, NodeRecord
from gputally.model.price import Asset
from gputally.shares.schemes import NodeLabels, Units, sharing_of

History = tuple[tuple[int, NodeFacts], ...]
"""Facts, each with the time from which it applies, oldest first."""


def most(known: Units | None, new: Units | None) -> Units | None:
    """The maximum units of each resource in either offer."""
    if known == new or not known:
        return new
    amounts = dict(known)
    for name, amount in new or ():
        amounts[name] = max(amount, amounts.get(name, 0))
    return tuple(sorted(amounts.items()))


def chained(records: Sequence[NodeRecord]) -> History:
    """The joint history of incarnations that continue each other; each ends when the next was created."""
    found: list[tuple[int, NodeFacts]] = []
    for record, following in zip_longest(records, records[1:]):
        for from_us, facts in record.facts:
            if following is None or from_us < following.created_us:
                offered = most(found[-1][1].offered, facts.offered) if found else facts.offered
                found.append((from_us, replace(facts, offered=offered)))
    return tuple(found)


def sharing_labels(facts: NodeFacts) -> NodeLabels:
    """The labels that the quantities of the node's pods depend on, corrected if they contradict its units."""
    return sharing_of(facts.labels) if facts.sharing is None else facts.sharing


def classes(history: History) -> History:
    """`history` reduced to the changes that affect the classification and price of pods."""
    found: list[tuple[int, NodeFacts]] = []
    for entry in history:
        if not found or _class(found[-1]) != _class(entry):
            found.append(entry)
    return tuple(found)


def reclassified_us(before: History, after: History) -> int | None:
    """The earliest time from which classification or price of the node's pods differ; None if they do not."""
    for was, now in zip_longest(classes(before), classes(after)):
        if was is None or now is None or (was[0], _class(was)) != (now[0], _class(now)):
            return min(entry[0] for entry in (was, now) if entry)
    return None


def _class(entry: tuple[int, NodeFacts]) -> tuple[Asset, NodeLabels, Units | None]:
    return entry[1].asset, sharing_labels(entry[1]), entry[1].offered


def cut(history: History, from_us: int) -> History:
    """`history` with an entry at `from_us`, so that it can change there."""
    before = [entry for entry in history if entry[0] <= from_us]
    if not before or before[-1][0] == from_us:
        return history
    return (*before, (from_us, before[-1][1]), *history[len(before) :])


def with_facts(history: History, facts: NodeFacts, *, from_us: int) -> History:
    """`history` with new `facts` from `from_us` on, but not before its last entry."""
    from_us = max(from_us, history[-1][0])
    return (*(entry for entry in history if entry[0] < from_us), (from_us, facts))


def with_readiness(history: History, *, ready: bool, from_us: int) -> History:
    """`history` with the node `ready` or not from `from_us` on; later changes of other facts stay."""
    if ready is history[-1][1].ready:
        return history
    from_us = max(from_us, history[0][0])
    before = [entry for entry in history if entry[0] <= from_us]
    after = ((at_us, replace(facts, ready=ready)) for at_us, facts in history if at_us > from_us)
    changed = (from_us, replace(before[-1][1], ready=ready))
    return (*(entry for entry in before if entry[0] < from_us), changed, *after)


class Reclassified(NamedTuple):
    """Classification or price of the pods on node `uid`, called `name`, differ from `since_us` on."""

    uid: str
    name: str
    since_us: int


def as_one(changed: Iterable[Reclassified | None]) -> Reclassified | None:
    """Merge several changes; the last one is of the node itself, or of one that it continues."""
    found = [each for each in changed if each]
    return found[-1]._replace(since_us=min(each.since_us for each in found)) if found else None

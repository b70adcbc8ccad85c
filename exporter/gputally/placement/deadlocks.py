"""Gangs that wait for each other: each would fit if another one gave back what it holds."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from gputally.model.needs import Needs, Taken
from gputally.placement.gangs import fitting
from gputally.placement.room import Room


class GangDemand(NamedTuple):
    """A gang that waits for so many pods of each request, and the node and UID of each pod that it has."""

    waiting: tuple[tuple[Needs, int], ...]
    bound: Sequence[tuple[str, str]]

    @property
    def missing(self) -> int:
        """Pods that it waits for."""
        return sum(count for _, count in self.waiting)


def stuck(gangs: Mapping[str, GangDemand], room: Room) -> dict[str, GangDemand]:
    """The gangs that do not fit now: only they can wait for each other."""
    return {key: each for key, each in gangs.items() if not _fits(each, room)}


def served_by(key: str, gangs: Mapping[str, GangDemand], room: Room) -> frozenset[str]:
    """The other gangs, of these that are `stuck`, that would fit without the pods of this one.

    The room is the same afterwards.
    """
    with _without(gangs[key].bound, room):
        return frozenset(other for other, each in gangs.items() if other != key and _fits(each, room))


def deadlocks(serves: Mapping[str, Collection[str]]) -> list[tuple[str, ...]]:
    """The gangs that wait for each other, by those that each one `serves`: all of a group are on circles."""
    servers = defaultdict[str, list[str]](list)
    for key, served in serves.items():
        for each in served:
            servers[each].append(key)
    groups, left = [], dict.fromkeys(serves)
    while left:
        key, _ = left.popitem()
        group = _reached(key, serves) & _reached(key, servers)
        if key in group:
            groups.append(tuple(sorted(group)))
            for each in group - {key}:
                del left[each]
    return sorted(groups)


def _reached(key: str, serves: Mapping[str, Collection[str]]) -> set[str]:
    found: set[str] = set()
    ahead = list(serves.get(key, ()))
    while ahead:
        each = ahead.pop()
        if each not in found:
            found.add(each)
            ahead += serves.get(each, ())
    return found


def _fits(gang: GangDemand, room: Room) -> bool:
    """Whether all pods that it waits for fit at once; of one that takes too long to place, nobody says that not."""
    found = fitting(gang.waiting, room, gang.missing)
    return found is None or found >= gang.missing


@contextmanager
def _without(bound: Sequence[tuple[str, str]], room: Room) -> Iterator[None]:
    taken: list[tuple[str, str, Taken]] = []
    try:
        for name, uid in bound:
            node = room.nodes.get(name)
            if node and node.place and uid in node.taken and uid not in node.stopping:
                taken.append((name, uid, node.taken[uid]))
                room.release(name, uid)
        yield
    finally:
        for name, uid, each in taken:
            room.bind(name, uid, each)

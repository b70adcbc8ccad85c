"""Pods that wait take the places that the scheduler would give them."""

from typing import Final

from gputally.model.placement.needs import Needs, Taken
from gputally.placement.candidates import available_on, candidates_for, with_enough
from gputally.placement.eviction import would_evict
from gputally.placement.exclusions import exclusions
from gputally.placement.fit import copies, fits
from gputally.placement.room import Room

MOST_EVICTIONS: Final = 32
"""For equal pods; each of them compares many nodes."""


def seat(needs: Needs, room: Room, count: int, *, key: str) -> int:
    """Bind up to `count` equal pods: where they fit, else by preemption. Returns how many have a place.

    Nodes with the most free GPUs come first; the scheduler may take others of those that fit. `key` begins their UIDs.
    """
    placed = 0
    free = list(with_enough(needs, candidates_for(needs, room).accepting, may_preempt=False))
    for node in free:
        if placed == count:
            break
        number = min(copies(needs.amounts, available_on(node, needs, may_preempt=False)), count - placed)
        if number:
            room.bind(node.name, f"{key}{node.name}", taken_by(needs, number, needs.priority))
            placed += number
    for index in range(min(count - placed, MOST_EVICTIONS)):
        eviction = would_evict(needs, room)
        if eviction is None:
            break
        room.evict(eviction)
        room.bind(eviction.node, f"{key}{index} evicting", taken_by(needs, 1, needs.priority))
        placed += 1
    return placed


def seat_nominated(needs: Needs, room: Room, uid: str, name: str, *, key: str) -> bool:
    """Bind the pod `uid` where room is made for it, if the room is enough; its nomination ends in any case."""
    node = room.nodes.get(name)
    if node is None or node.place is None or exclusions(needs, node.place):
        room.withdraw(name, uid)
        return False
    is_free = fits(needs.amounts, available_on(node, needs, uid, may_preempt=False))
    eviction = None if is_free else would_evict(needs, room.only(node), uid=uid)
    room.withdraw(name, uid)
    if eviction:
        room.evict(eviction)
    if is_free or eviction:
        room.bind(name, f"{key}nominated {uid}", taken_by(needs, 1, needs.priority))
    return is_free or eviction is not None


def taken_by(needs: Needs, number: int, priority: int) -> Taken:
    """What so many equal pods take, as if they were one."""
    return Taken(tuple([(resource, amount * number) for resource, amount in needs.amounts]), priority)

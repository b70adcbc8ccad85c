"""The parts of a GPU, and the attribution of their usage and memory to assignments, by the share of each in a part."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from gputally.model.devices import Part, PartAllocation, Process
from gputally.model.units import GPU


def apportion(amount: int, weights: Sequence[int]) -> list[int]:
    """Divide `amount` in proportion to `weights` by largest remainder; among equal remainders, the first is rounded up.

    `weights` must not be negative, nor all 0.
    """
    total = sum(weights)
    divided = [amount * weight // total for weight in weights]
    remainder = amount - sum(divided)
    if remainder:
        order = sorted(range(len(weights)), key=lambda index: -(amount * weights[index] % total))
        for index in order[:remainder]:
            divided[index] += 1
    return divided


class Division(NamedTuple):
    """Weights that divide the usage of a part among its assignments (in order) and usage outside any allocation."""

    assignments: tuple[int, ...]
    unattributed: int


_ALL_UNATTRIBUTED = Division((), 1)


def shares(weight: int, held: Sequence[PartAllocation]) -> tuple[int, ...]:
    """The share of each allocation of a part, in µGPU; their sum never exceeds the `weight` of the part.

    An exclusive allocation has the whole part. A replica has floor(weight / number of replicas), as in the aggregator.
    If the sum exceeds the part (pods that share a claim, terminated pods still listed, wrong replica counts), the
    shares are scaled down in proportion, by pod: a claim belongs to the pod, whatever the number of its containers.
    """
    requested = [_requested(weight, each) for each in held]
    if sum(requested) <= weight:
        return tuple(requested)
    found = [0] * len(held)
    pods = list(_by_pod(held).values())
    by_pod = [min(weight, sum(requested[index] for index in pod)) for pod in pods]
    for pod, share in zip(pods, apportion(weight, by_pod) if sum(by_pod) > weight else by_pod, strict=True):
        _divide(found, share, pod, requested)
    return tuple(found)


def division(
    held: Sequence[PartAllocation], held_shares: Sequence[int], processes: Sequence[Process] | None
) -> Division:
    """How to divide the usage of a part: by the utilisation of its processes if known, otherwise by share.

    The processes count only if the pods of all processes and allocations are known. Usage of processes of other pods
    is unattributed.
    """
    if not held:
        return _ALL_UNATTRIBUTED
    return _by_busy(held, held_shares, processes) or Division(_weights(held_shares), 0)


def divided(amount: int, by: Division) -> tuple[Sequence[int], int]:
    """The part of `amount` of each assignment, and the unattributed part; their sum is `amount`."""
    if by.unattributed == 0 and len(by.assignments) == 1:
        return (amount,), 0
    *assignments, unattributed = apportion(amount, (*by.assignments, by.unattributed))
    return assignments, unattributed


def memory(
    held: Sequence[PartAllocation],
    held_shares: Sequence[int],
    processes: Sequence[Process] | None,
    memory_used: int | None,
) -> Sequence[int] | None:
    """Memory of each allocation in bytes: that of the pod's processes, otherwise by share; None if unknown.

    An empty process list while memory is used means that the agent is not allowed to see the processes.
    """
    found = _by_memory(held, held_shares, processes) if processes or not memory_used else None
    if found is None and memory_used is not None and held:
        return apportion(memory_used, _weights(held_shares))
    return found


def _requested(weight: int, allocation: PartAllocation) -> int:
    total = max(1, allocation.replicas_in_all)
    unit = allocation.unit or weight // total
    return min(weight, unit * min(max(0, allocation.replicas), total))


def _weights(held_shares: Sequence[int]) -> tuple[int, ...]:
    """The shares, or equal weights if all shares round to 0."""
    return tuple(held_shares) if any(held_shares) else (1,) * len(held_shares)


def _by_pod(held: Sequence[PartAllocation]) -> dict[tuple[str, str], list[int]]:
    found: dict[tuple[str, str], list[int]] = {}
    for index, each in enumerate(held):
        found.setdefault((each.namespace, each.pod), []).append(index)
    return found


def _divide(found: list[int], amount: int, pod: Sequence[int], weights: Sequence[int]) -> None:
    """Divide `amount` among the containers of a pod, whose indices in `found` are `pod`."""
    for index, part in zip(pod, apportion(amount, _weights([weights[index] for index in pod])), strict=True):
        found[index] = part


def _by_busy(
    held: Sequence[PartAllocation], held_shares: Sequence[int], processes: Sequence[Process] | None
) -> Division | None:
    pods = _indices_by_uid(held, processes)
    busy = [(each.pod_uid or "", each.busy) for each in processes or () if each.busy]
    if pods is None or not busy:
        return None
    by_uid: dict[str, int] = {}
    for uid, amount in busy:
        by_uid[uid] = by_uid.get(uid, 0) + max(0, amount)
    found, unattributed = _amounts_of_pods(pods, by_uid, held_shares)
    return Division(found, unattributed) if sum(found) + unattributed else None


def _by_memory(
    held: Sequence[PartAllocation], held_shares: Sequence[int], processes: Sequence[Process] | None
) -> Sequence[int] | None:
    pods = _indices_by_uid(held, processes)
    if pods is None:
        return None
    by_uid: dict[str, int] = {}
    for process in processes or ():
        if process.memory is None:
            return None
        uid = process.pod_uid or ""
        by_uid[uid] = by_uid.get(uid, 0) + process.memory
    return _amounts_of_pods(pods, by_uid, held_shares)[0]


def _indices_by_uid(held: Sequence[PartAllocation], processes: Sequence[Process] | None) -> dict[str, list[int]] | None:
    """Indices of the allocations by pod UID; None if the pod of a process or the UID of a pod is unknown.

    If only one pod holds the part, its UID may be unknown (""): the usage of all pods' processes is then its own.
    """
    if not held or processes is None or any(each.pod_uid is None for each in processes):
        return None
    pods = list(_by_pod(held).values())
    uids = [next((held[index].pod_uid for index in pod if held[index].pod_uid), "") for pod in pods]
    if len(pods) > 1 and "" in uids:
        return None
    return dict(zip(uids, pods, strict=False)) if len(set(uids)) == len(pods) else None


def _amounts_of_pods(
    pods: dict[str, list[int]], by_uid: dict[str, int], held_shares: Sequence[int]
) -> tuple[tuple[int, ...], int]:
    """Divide process amounts `by_uid` among the allocations; the second value is the amount of other pods."""
    found = [0] * len(held_shares)
    total = sum(by_uid.values())
    for uid, pod in pods.items():
        _divide(found, by_uid.get(uid, 0) if uid else total - by_uid.get("", 0), pod, held_shares)
    return tuple(found), total - sum(found)


class Slot(Struct, eq=False, gc=False):
    """A part of `weight` µGPU whose utilisation is accounted up to `watermark_us`."""

    uuid: str
    weight: int
    watermark_us: int


class Layout:
    """The current parts of a GPU, and the `unsliced` rest in µGPU. The weights never add up to more than the GPU."""

    def __init__(self) -> None:
        self.slots: dict[str, Slot] = {}
        self.unsliced = GPU
        self._reported: list[tuple[str, int]] = []

    def update(self, parts: Sequence[Part], *, at_us: int) -> bool:
        """Replace the parts; new parts start at `at_us`. Returns whether anything changed."""
        reported = [(part.uuid, part.weight) for part in parts]
        if reported == self._reported:
            return False
        self._reported = reported
        weights = _part_weights({uuid: max(0, weight) for uuid, weight in reported})
        known = self.slots
        self.slots = {uuid: Slot(uuid, weight, _watermark(known.get(uuid), at_us)) for uuid, weight in weights.items()}
        self.unsliced = GPU - sum(weights.values())
        return True

    def restart(self, at_us: int) -> None:
        """Skip all utilisation before `at_us`."""
        for slot in self.slots.values():
            slot.watermark_us = at_us

    def watermark_us(self, at_us: int) -> int:
        """The time up to which all parts are accounted; `at_us` if there are none."""
        return min((slot.watermark_us for slot in self.slots.values()), default=at_us)


def _watermark(slot: Slot | None, at_us: int) -> int:
    return slot.watermark_us if slot else at_us


def _part_weights(weights: dict[str, int]) -> dict[str, int]:
    if sum(weights.values()) <= GPU:
        return weights
    return dict(zip(weights, apportion(GPU, [*weights.values()]), strict=True))

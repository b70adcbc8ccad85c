"""Who had which share of a part, and how much of the part's use and memory was whose."""

from collections.abc import Sequence
from typing import NamedTuple

from gputally.metering.apportion import apportion
from gputally.model.measured.device import PartAllocation, Process


class Division(NamedTuple):
    """In which proportion the use of a part goes to its holders, in their order, and to nobody."""

    assignments: tuple[int, ...]
    nobody: int


_NOBODY = Division((), 1)


def shares(weight: int, held: Sequence[PartAllocation]) -> tuple[int, ...]:
    """The share in µGPU of each who holds a part of that `weight`; together never more than it.

    Who holds it exclusively has all of it, who holds replicas floor(weight / replicas in all) for each, which is what
    the aggregator counts for the same units. Where that is too much (pods that share a claim, an ended pod still
    listed, replicas counted wrongly) all are scaled down alike, by pod, as a claim is a pod's whatever the number of
    its containers.
    """
    claims = [_claim(weight, each) for each in held]
    if sum(claims) <= weight:
        return tuple(claims)
    found = [0] * len(held)
    pods = list(_by_pod(held).values())
    by_pod = [min(weight, sum(claims[index] for index in pod)) for pod in pods]
    for pod, share in zip(pods, apportion(weight, by_pod) if sum(by_pod) > weight else by_pod, strict=True):
        _divide(found, share, pod, claims)
    return tuple(found)


def division(
    held: Sequence[PartAllocation], held_shares: Sequence[int], processes: Sequence[Process] | None
) -> Division:
    """How to divide the use of a part that is `held` in these shares: by what its processes did, else by shares.

    Processes count where all of them can be seen and it is known which pods hold the part; what those of others did
    is nobody's.
    """
    if not held:
        return _NOBODY
    return _by_busy(held, held_shares, processes) or Division(_weights(held_shares), 0)


def divided(amount: int, by: Division) -> tuple[Sequence[int], int]:
    """What of `amount` each holder has, and what nobody has; together all of it."""
    if by.nobody == 0 and len(by.assignments) == 1:
        return (amount,), 0
    *assignments, nobody = apportion(amount, (*by.assignments, by.nobody))
    return assignments, nobody


def memory(
    held: Sequence[PartAllocation],
    held_shares: Sequence[int],
    processes: Sequence[Process] | None,
    memory_used: int | None,
) -> Sequence[int] | None:
    """Bytes of each holder: what its pod's processes have, else its share of what is used; None where unknown.

    No process at all, where memory is used, is what one is shown who may not see those of others.
    """
    found = _by_memory(held, held_shares, processes) if processes or not memory_used else None
    if found is None and memory_used is not None and held:
        return apportion(memory_used, _weights(held_shares))
    return found


def _claim(weight: int, held: PartAllocation) -> int:
    in_all = max(1, held.replicas_in_all)
    unit = held.unit or weight // in_all
    return min(weight, unit * min(max(0, held.replicas), in_all))


def _weights(held_shares: Sequence[int]) -> tuple[int, ...]:
    """The shares, or alike for all where each is too small to count."""
    return tuple(held_shares) if any(held_shares) else (1,) * len(held_shares)


def _by_pod(held: Sequence[PartAllocation]) -> dict[tuple[str, str], list[int]]:
    found: dict[tuple[str, str], list[int]] = {}
    for index, each in enumerate(held):
        found.setdefault((each.namespace, each.pod), []).append(index)
    return found


def _divide(found: list[int], amount: int, pod: Sequence[int], weights: Sequence[int]) -> None:
    """Give `amount` to the containers of a `pod`, which `found` has at these indices."""
    for index, part in zip(pod, apportion(amount, _weights([weights[index] for index in pod])), strict=True):
        found[index] = part


def _by_busy(
    held: Sequence[PartAllocation], held_shares: Sequence[int], processes: Sequence[Process] | None
) -> Division | None:
    pods = _seen(held, processes)
    busy = [(each.pod_uid or "", each.busy) for each in processes or () if each.busy]
    if pods is None or not busy:
        return None
    by_uid: dict[str, int] = {}
    for uid, amount in busy:
        by_uid[uid] = by_uid.get(uid, 0) + max(0, amount)
    found, others = _of_pods(pods, by_uid, held_shares)
    return Division(found, others) if sum(found) + others else None


def _by_memory(
    held: Sequence[PartAllocation], held_shares: Sequence[int], processes: Sequence[Process] | None
) -> Sequence[int] | None:
    pods = _seen(held, processes)
    if pods is None:
        return None
    by_uid: dict[str, int] = {}
    for process in processes or ():
        if process.memory is None:
            return None
        uid = process.pod_uid or ""
        by_uid[uid] = by_uid.get(uid, 0) + process.memory
    return _of_pods(pods, by_uid, held_shares)[0]


def _seen(held: Sequence[PartAllocation], processes: Sequence[Process] | None) -> dict[str, list[int]] | None:
    """The holders by their pod's UID; None where that, or whose a process is, cannot be told.

    The only pod may be without one: it is "" then, and has what any pod's processes do.
    """
    if not held or processes is None or any(each.pod_uid is None for each in processes):
        return None
    pods = list(_by_pod(held).values())
    uids = [next((held[index].pod_uid for index in pod if held[index].pod_uid), "") for pod in pods]
    if len(pods) > 1 and "" in uids:
        return None
    return dict(zip(uids, pods, strict=False)) if len(set(uids)) == len(pods) else None


def _of_pods(
    pods: dict[str, list[int]], by_uid: dict[str, int], held_shares: Sequence[int]
) -> tuple[tuple[int, ...], int]:
    """What the holders have of the amounts of processes `by_uid`, and what others have."""
    found = [0] * len(held_shares)
    total = sum(by_uid.values())
    for uid, pod in pods.items():
        _divide(found, by_uid.get(uid, 0) if uid else total - by_uid.get("", 0), pod, held_shares)
    return tuple(found), total - sum(found)

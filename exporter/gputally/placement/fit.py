"""Whether and how often requests fit, which pods must go until they do, and how few nodes would hold them."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf

from gputally.model.needs import Amounts, Taken

Pods = Sequence[tuple[str, Taken]]
"""Pods with their UIDs."""


def fits(amounts: Amounts, available: Mapping[str, int]) -> bool:
    """Whether there is enough of everything requested; other resources do not matter, even if overcommitted.

    Source: kubernetes pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest.
    """
    for resource, amount in amounts:  # noqa: SIM110 - half as fast with a generator, and asked of every node
        if available.get(resource, 0) < amount:
            return False
    return True


def lacking(amounts: Amounts, available: Mapping[str, int]) -> tuple[str, ...]:
    """The resources of which there is not enough."""
    return tuple([resource for resource, amount in amounts if available.get(resource, 0) < amount])


def copies(amounts: Amounts, available: Mapping[str, int]) -> int:
    """How many times the requests fit."""
    return max(min((available.get(resource, 0) // amount for resource, amount in amounts if amount), default=0), 0)


def must_go(amounts: Amounts, empty: Mapping[str, int], pods: Iterable[tuple[str, Taken]]) -> tuple[str, ...]:
    """A minimal set of `pods` that must go for the requests to fit; the first ones stay if possible.

    `empty` is what is available without any of them, in which the requests fit.
    """
    rest = {resource: empty.get(resource, 0) - amount for resource, amount in amounts}
    going = []
    for uid, taken in pods:
        stays = [(resource, amount) for resource, amount in taken.amounts if resource in rest]
        if all(rest[resource] >= amount for resource, amount in stays):
            for resource, amount in stays:
                rest[resource] -= amount
        else:
            going.append(uid)
    return tuple(going)


def by_importance(pods: Iterable[tuple[str, Taken]]) -> Pods:
    """The most important first: of a higher priority, then of an earlier start; pods that have not started are last.

    Source: kubernetes pkg/scheduler/util/utils.go, MoreImportantPod.
    """
    return sorted(pods, key=lambda pod: (-pod[1].priority, start_of(pod[1]), pod[0]))


def start_of(taken: Taken) -> float:
    """When it started, in µs; later than all others if it has not."""
    return inf if taken.started_us is None else taken.started_us


def nodes_needed(amounts: Amounts, count: int, offers: Mapping[Amounts, int]) -> int | None:
    """The smallest number of nodes that hold `count` pods with these amounts, if they were empty.

    `offers` counts the nodes by their allocatable amounts. None if all of them together are too small.
    """
    sizes = sorted(((copies(amounts, dict(offered)), number) for offered, number in offers.items()), reverse=True)
    needed, rest = 0, count
    for each, number in sizes:
        if not each or rest <= 0:
            break
        nodes = min(number, -(-rest // each))
        needed += nodes
        rest -= nodes * each
    return None if rest > 0 else needed

"""What was known of a random history at a moment in it, to tell it from what is learned later."""

from collections.abc import Sequence

from tests.property.node_lives import OPENED
from tests.told import Told
from tests.true_ends import seconds
from tests.true_nodes import nodes_of
from tests.truth import Pod as TruePod

Held = dict[str, tuple[int, int, int]]
"""Start, end and quantity of what each pod holds."""


def complete_moments(log: tuple[Told, ...]) -> list[int]:
    """All `i` for which nothing first told after `log[:i]` had begun by then, and nothing is withdrawn for a while."""
    pods = {uid(t) for t in log if t.kind == "pod"}
    known = [held(log[:i], pods) for i in range(len(log) + 1)]
    return [i for i in range(1, len(log)) if _knows_nodes(log, i) and _knows_pods(known[i:], log[i - 1].at)]


def _knows_nodes(log: tuple[Told, ...], i: int) -> bool:
    told, then = {uid(t) for t in log[:i]}, log[i - 1].at
    later = (t for t in log[i:] if t.kind == "node" and uid(t) not in told)
    return all(seconds(t.manifest["metadata"]["creationTimestamp"]) > then for t in later)


def _knows_pods(known: Sequence[Held], then: int) -> bool:
    return then >= OPENED and all(_covers(each[pod], last, then) for each in known for pod, last in known[-1].items())


def held(log: tuple[Told, ...], pods: set[str]) -> Held:
    """When pods hold something, as far as `log` tells it, and how much; none from the end of time on."""
    nodes = nodes_of(log)
    found = dict.fromkeys(pods, (10**9, 10**9, 0))
    for pod in pods & {uid(t) for t in log}:
        true = TruePod([t for t in log if uid(t) == pod], nodes)
        if true.bound is not None and not true.never_held:
            found[pod] = (true.bound, 10**9 if true.end is None else true.end, true.quantity(true.bound))
    return found


def _covers(known: tuple[int, int, int], later: tuple[int, int, int], until: int) -> bool:
    """Whether all that is known later of the time up to `until` was known before."""
    start, end = later[0], min(later[1], until + 1)
    return start >= end or (known[0] <= start and end <= known[1] and known[2] == later[2])


def uid(told: Told) -> str:
    found: str = told.manifest["metadata"]["uid"]
    return found

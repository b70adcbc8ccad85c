"""Pods that wait while others run that should not precede them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from gputally.model.needs import Needs, Taken
from gputally.model.verdicts import FindingKind, PriorityFinding, Reason, Verdict
from gputally.placement.candidates import candidates_for, is_large
from gputally.placement.fit import start_of
from gputally.placement.node_room import NodeRoom
from gputally.placement.room import Room

MAX_PODS: Final = 20
"""Pods that a finding names; its GPUs are those of all."""
_OUTRANKED: Final = (
    Reason.OTHER_RESOURCE,
    Reason.NEVER_PREEMPTS,
    Reason.INVERSION,
    Reason.FRAGMENTED,
    Reason.CAPACITY,
)


class PodsOfNode(tuple[str, ...]):
    """UIDs of pods of one node."""

    __slots__ = ()


def findings(needs: Needs, room: Room, verdict: Verdict, *, since_us: int | None = None) -> tuple[PriorityFinding, ...]:
    """What is wrong with the order of priorities for a class of pods that wait with this verdict since `since_us`.

    Only pods with the GPUs that it needs count, on nodes that accept it.
    """
    if verdict.reason not in _OUTRANKED:
        return ()
    groups = candidates_for(needs, room).accepting
    large = [node for group in groups for node in group.nodes.values() if is_large(needs.amounts, node.offered)]
    lower = [pod for pod in _holders(large, needs) if pod[1].priority < needs.priority]
    found = [_finding(FindingKind.OUTRANKED, needs, lower)]
    if since_us is not None:
        later = [pod for pod in lower if since_us < start_of(pod[1]) < float("inf")]
        starving = _finding(FindingKind.STARVATION, needs, later)
        found.append(replace(starving, latest_us=max((each.started_us or 0 for _, each in later), default=None)))
    if verdict.reason is Reason.INVERSION:
        higher = (pod for pod in _holders(large, needs) if pod[1].priority >= needs.priority)
        others = [pod for pod in higher if not pod[1].is_serving]
        found.append(_finding(FindingKind.INVERSION, needs, others))
    return tuple([each for each in found if each.pods])


def _holders(nodes: Iterable[NodeRoom], needs: Needs) -> Iterator[tuple[str, Taken]]:
    """The pods that hold such GPUs on these nodes."""
    key = ("holders", needs.gpus)
    for node in nodes:
        if not isinstance(uids := node.memo.get(key), PodsOfNode):
            uids = node.memo[key] = PodsOfNode([uid for uid, each in node.taken.items() if _gpus(each, needs)])
        yield from ((uid, node.taken[uid]) for uid in uids)


def _finding(kind: FindingKind, needs: Needs, pods: Sequence[tuple[str, Taken]]) -> PriorityFinding:
    """Names the pods of the lowest priority, of these the latest."""
    named = sorted(pods, key=lambda pod: (pod[1].priority, -start_of(pod[1]), pod[0]))[:MAX_PODS]
    return PriorityFinding(
        kind=kind, pods=tuple([uid for uid, _ in named]), gpus=sum(_gpus(each, needs) for _, each in pods)
    )


def _gpus(taken: Taken, needs: Needs) -> int:
    return sum([amount for resource, amount in taken.amounts if resource in needs.gpus])

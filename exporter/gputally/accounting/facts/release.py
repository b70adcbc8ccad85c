"""When an allocation is released: by its pod, by its node, or because no kubelet accepted the pod in time.

Their events come from different watches in no common order, so the end is recomputed after each. If only an interval
is known, the allocation is charged until the interval's start.
"""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from msgspec.structs import replace

from gputally.accounting.facts.lifetime import never_held
from gputally.accounting.facts.node_clock import true_times
from gputally.accounting.facts.node_history import History
from gputally.model.allocation import End, Ending, Gap
from gputally.model.node_record import Span
from gputally.model.pod_record import Clock, PodRecord
from gputally.model.units import US_PER_SECOND

ACCEPTANCE_US = 600 * US_PER_SECOND
"""How long a bound pod holds its GPUs until its kubelet accepts it. A kubelet accepts within seconds; evictions from a
lost node begin after 300 s."""
_RECOVERY_US = 60 * US_PER_SECOND
"""How long after a node is ready again its kubelet may first report containers that were lost with it."""


def deadline_us(record: PodRecord) -> int | None:
    """When the pod loses its GPUs unless its kubelet accepts it; None if it is accepted or not bound."""
    if record.accepted or record.scheduled_us is None:
        return None
    return record.scheduled_us + ACCEPTANCE_US


def lapsed_us(record: PodRecord, at_us: int) -> int | None:
    """The pod's deadline if it has passed by `at_us`, else None."""
    deadline = deadline_us(record)
    return deadline if deadline is not None and deadline <= at_us else None


class Unaccepted:
    """UIDs of the pods that are not accepted yet; `next_us` is their earliest deadline."""

    def __init__(self) -> None:
        self.next_us: int | None = None
        self._uids: set[str] = set()
        self._deadlines: list[tuple[int, str]] = []

    def put(self, record: PodRecord, *, at_us: int) -> None:
        """Add the pod if its deadline is in the future."""
        deadline = deadline_us(record)
        if deadline is not None and deadline > at_us and record.uid not in self._uids:
            self._uids.add(record.uid)
            heappush(self._deadlines, (deadline, record.uid))
            self.next_us = self._deadlines[0][0]

    def due(self, now_us: int) -> Iterator[str]:
        """Pods whose deadline has passed since the last call."""
        while self._deadlines and self._deadlines[0][0] <= now_us:
            _, uid = heappop(self._deadlines)
            self._uids.discard(uid)
            yield uid
        self.next_us = self._deadlines[0][0] if self._deadlines else None


class NodeLife(NamedTuple):
    """A node's influence on the end of its pods: it was deleted within [gone_us, gone_by_us].

    `unready` are the spans when the node was not ready, or absent before it registered again, oldest first.
    """

    gone_us: int | None = None
    gone_by_us: int | None = None
    unready: Sequence[Span] = ()

    def lost_us(self, from_us: int, to_us: int) -> int:
        """The earliest possible end of what was observed to end in [from_us, to_us]: when the node was lost."""
        start_us = from_us
        for lost_us, back_us in reversed(self.unready):
            tolerance_us = _RECOVERY_US if start_us == from_us else 0  # further back only through adjoining spans
            if lost_us <= to_us and (back_us is None or lost_us < back_us >= start_us - tolerance_us):
                start_us = min(start_us, lost_us)
        return start_us


class PodNode(NamedTuple):
    """A pod's node: its identity, its history including successors, its influence on the pod's end, and its creation.

    The last entry of `history` has the maximum that the node offered under any of these identities.
    """

    uid: str
    name: str
    history: History
    life: NodeLife
    born_us: int = 0


def released(record: PodRecord, node: NodeLife = NodeLife()) -> PodRecord:  # noqa: B008 - frozen
    """`record` with its end, if known. A pod that was never accepted held nothing after its deadline."""
    own = record.ending
    if own and never_held(record, own.by):
        return replace(record, end_by=own.by, end_us=own.to_us, gap=None)
    ending = _ending(own, record.clock, node) if own or node.gone_us is not None else None
    if ending is None:
        return record if record.end_by is None else replace(record, end_us=None, end_by=None, gap=None)
    limit_us = deadline_us(record) or ending.to_us
    from_us, to_us = min(ending.from_us, limit_us), min(ending.to_us, limit_us)
    from_us = max(from_us, record.scheduled_us or 0, record.started_us or 0)
    if from_us < to_us:
        return replace(record, end_by=ending.by, end_us=from_us, gap=Gap(from_us=from_us, to_us=to_us))
    return replace(record, end_by=ending.by, end_us=to_us, gap=None)


def _ending(own: Ending | None, clock: Clock | None, node: NodeLife) -> Ending | None:
    """The pod's own end, limited by its node: only an end dated by the API may be later than the loss of the node."""
    if own and own.by is End.FINISHED:
        from_us, to_us = true_times(own.from_us, clock)
        from_us, to_us = max(from_us, own.held_us), max(to_us, own.held_us)
        return replace(own, from_us=min(from_us, own.to_us), to_us=min(to_us, own.to_us))
    if own and own.by is End.TERMINAL:
        own = replace(own, from_us=node.lost_us(own.from_us, own.to_us))
    if node.gone_us is None or (own and own.to_us <= node.gone_us):
        return own
    gone_by_us = max(node.gone_us, node.gone_by_us or 0)
    from_us = node.lost_us(node.gone_us, gone_by_us)
    if own:
        return Ending(by=End.NODE, from_us=min(own.from_us, from_us), to_us=min(own.to_us, gone_by_us))
    return Ending(by=End.NODE, from_us=from_us, to_us=gone_by_us)

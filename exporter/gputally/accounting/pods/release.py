"""When an allocation was released: what the pod tells of its end, and what its node tells, together.

Both come from different watches in no common order, so the end is derived anew whenever either tells more. Where the
truth lies in an interval, the allocation is charged to the interval's start.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from gputally.accounting.nodes.node_clock import true_times
from gputally.accounting.nodes.node_history import History
from gputally.accounting.pods.acceptance import deadline_us
from gputally.accounting.pods.lifetime import never_held
from gputally.model.allocation import End, Ending, Gap
from gputally.model.node import Span
from gputally.model.pod import Clock, PodRecord
from gputally.model.units import US_PER_SECOND

_RECOVERY_US = 60 * US_PER_SECOND
"""How long after a node is ready again its kubelet may first tell of containers that were lost with it."""


class NodeLife(NamedTuple):
    """What a node says to the end of its pods: that it ceased to exist in [gone_us, gone_by_us], and when it was lost.

    `unready` are the times when it was not ready, or not there before it registered anew, in their order.
    """

    gone_us: int | None = None
    gone_by_us: int | None = None
    unready: Sequence[Span] = ()

    def lost_us(self, from_us: int, to_us: int) -> int:
        """Since when what ended in [from_us, to_us] by all appearance may have ended: since the node was lost."""
        start_us = from_us
        for lost_us, back_us in reversed(self.unready):
            patience_us = _RECOVERY_US if start_us == from_us else 0  # further back, only while it was lost in one go
            if lost_us <= to_us and (back_us is None or lost_us < back_us >= start_us - patience_us):
                start_us = min(start_us, lost_us)
        return start_us


class Home(NamedTuple):
    """A pod's node: which it is, what is known of it and of what continues it, and what it says to the pod's end.

    The last of the `history` has the most that the node offered as any of these.
    """

    uid: str
    name: str
    history: History
    life: NodeLife


def released(record: PodRecord, node: NodeLife = NodeLife()) -> PodRecord:  # noqa: B008 - frozen
    """`record` with its end, as far as it is known. One that was never accepted held nothing after its deadline."""
    own = record.ending
    if own and never_held(record, own.by):
        return replace(record, end_by=own.by, end_us=own.to_us, gap=None)
    ending = _ending(own, record.clock, node)
    if ending is None:
        return record if record.end_by is None else replace(record, end_us=None, end_by=None, gap=None)
    limit_us = deadline_us(record) or ending.to_us
    from_us, to_us = min(ending.from_us, limit_us), min(ending.to_us, limit_us)
    from_us = max(from_us, record.scheduled_us or 0, record.started_us or 0)
    if from_us < to_us:
        return replace(record, end_by=ending.by, end_us=from_us, gap=Gap(from_us=from_us, to_us=to_us))
    return replace(record, end_by=ending.by, end_us=to_us, gap=None)


def _ending(own: Ending | None, clock: Clock | None, node: NodeLife) -> Ending | None:
    """No allocation outlives its node unless the API dates its end; nor is it known to have outlived its kubelet."""
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

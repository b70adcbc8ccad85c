"""Nodes whose clocks are off, by what the API server's own times say of those that kubelets write.

A kubelet takes a pod up after its binding and before anybody sees that it did, both by the API server's clock. So
`status.startTime`, by the node's, is ahead of the truth by something between those two; so is every other time that the
kubelet writes. A difference of two seconds may be cut seconds and the way the news took: it passes as none.
"""

from collections.abc import Callable

from gputally.accounting.pods.runs import finished_at, starts
from gputally.model.kube import Pod
from gputally.model.pod import Clock, PodRecord
from gputally.model.units import US_PER_SECOND, to_us

OFF_US = 2 * US_PER_SECOND
"""What is further off is told, and set right."""
_SHOWN = 20
"""A node is a label: of more that are off, the worst are told."""


def clock_of(record: PodRecord, pod: Pod, *, scheduled_us: int | None, at_us: int) -> Clock | None:
    """What this form of the pod adds to what is known of its node's clock; None while that passes as right."""
    started_at = pod.status.start_time
    if started_at is None or scheduled_us is None:
        return record.clock
    taken_up_us = to_us(started_at)
    most_us, least_us = taken_up_us - scheduled_us, taken_up_us - at_us
    if record.clock is None and most_us >= -OFF_US and least_us <= OFF_US:
        return None
    finished = finished_at(pod)
    told = (*starts(pod), finished) if finished else starts(pod)
    least_us = max([least_us, *(to_us(time) - at_us for time in told)])
    known_us = record.clock.least_us if record.clock else least_us
    return Clock(least_us=min(max(least_us, known_us), most_us), most_us=most_us)


def true_times(time_us: int, clock: Clock | None) -> tuple[int, int]:
    """The earliest and the latest moment that a time of the node's clock can mean."""
    return (time_us - clock.most_us, time_us - clock.least_us) if clock else (time_us, time_us)


class NodeClocks:
    """By how much nodes are off, by name, as the pod bound there last shows."""

    def __init__(self) -> None:
        self.shown_by: dict[str, tuple[int, Clock]] = {}

    def learn(self, record: PodRecord) -> None:
        """Look at a pod whose clock is off, or whose node's was."""
        bound_us = record.scheduled_us or 0
        if not record.accepted or bound_us < self.shown_by.get(record.node, (0,))[0]:
            return
        if record.clock:
            self.shown_by[record.node] = bound_us, record.clock
        else:
            del self.shown_by[record.node]

    def worst(self, exists: Callable[[str], bool]) -> dict[str, int]:
        """µs by which existing nodes are ahead, negative for behind: of those that are off the worst."""
        self.shown_by = {node: known for node, known in self.shown_by.items() if exists(node)}
        skews = {node: (clock.least_us + clock.most_us) // 2 for node, (_, clock) in self.shown_by.items()}
        return dict(sorted(skews.items(), key=lambda skew: -abs(skew[1]))[:_SHOWN])

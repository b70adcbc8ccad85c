"""Clock offsets of nodes, from kubelet timestamps compared with API server timestamps.

A kubelet starts a pod after its binding and before anybody observes the start, both by the API server's clock. So
`status.startTime`, by the node's clock, differs from the true time by an amount between these two; so do all other
timestamps of the kubelet. Up to two seconds may be truncation and latency, and count as no offset.
"""

from collections.abc import Callable

from gputally.accounting.facts.runs import finished_at, starts
from gputally.model.kube.pods import Pod
from gputally.model.pod_record import Clock, PodRecord
from gputally.model.units import US_PER_SECOND, to_us

OFF_US = 2 * US_PER_SECOND
"""Larger offsets are exported, and corrected."""
_SHOWN = 20
"""Exported offsets, the largest: each node is a label value."""


def clock_of(record: PodRecord, pod: Pod, *, scheduled_us: int | None, at_us: int) -> Clock | None:
    """The node's clock offset that this state of the pod shows, given what is known; None if there is none."""
    started_at = pod.status.start_time
    if started_at is None or scheduled_us is None:
        return record.clock
    taken_up_us = to_us(started_at)
    most_us, least_us = taken_up_us - scheduled_us, taken_up_us - at_us
    if record.clock is None and most_us >= -OFF_US and least_us <= OFF_US:
        return None
    finished = finished_at(pod)
    times = (*starts(pod), finished) if finished else starts(pod)
    least_us = max([least_us, *(to_us(time) - at_us for time in times)])
    known_us = record.clock.least_us if record.clock else least_us
    return Clock(least_us=min(max(least_us, known_us), most_us), most_us=most_us)


def true_times(time_us: int, clock: Clock | None) -> tuple[int, int]:
    """The earliest and latest true time of a node timestamp."""
    return (time_us - clock.most_us, time_us - clock.least_us) if clock else (time_us, time_us)


class NodeClocks:
    """Clock offsets of nodes by name, from the pod that was bound there last."""

    def __init__(self) -> None:
        self.shown_by: dict[str, tuple[int, Clock]] = {}

    def learn(self, record: PodRecord) -> None:
        """Update from a pod, if its clock or its node's clock is off."""
        if record.clock is None and record.node not in self.shown_by:  # nearly all
            return
        bound_us = record.scheduled_us or 0
        if not record.accepted or bound_us < self.shown_by.get(record.node, (0,))[0]:
            return
        if record.clock:
            self.shown_by[record.node] = bound_us, record.clock
        else:
            del self.shown_by[record.node]

    def worst(self, exists: Callable[[str], bool]) -> dict[str, int]:
        """The largest offsets of existing nodes, µs; positive if the node's clock is ahead."""
        self.shown_by = {node: known for node, known in self.shown_by.items() if exists(node)}
        skews = {node: (clock.least_us + clock.most_us) // 2 for node, (_, clock) in self.shown_by.items()}
        return dict(sorted(skews.items(), key=lambda skew: -abs(skew[1]))[:_SHOWN])

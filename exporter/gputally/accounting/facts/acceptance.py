"""Bound pods that no kubelet has accepted yet hold their GPUs for a limited time."""

from collections.abc import Iterator
from heapq import heappop, heappush

from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_SECOND

ACCEPTANCE_US = 600 * US_PER_SECOND
"""How long a bound pod holds its GPUs until its kubelet accepts it. A kubelet accepts within seconds; evictions from a
lost node begin after 300 s."""


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

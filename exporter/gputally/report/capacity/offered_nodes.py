"""What each node offered in a window, and which node continues which."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable

from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import CapacityRecord, NodeSteps, Window


class OfferedNodes:
    """The capacity records of a window by node UID, in chronological order.

    Of a node that ended before the window, the last record is known as soon as it is asked for: pods may outlive their
    node. Raises: LedgerError, here and in all methods.
    """

    def __init__(self, reader: LedgerReader, window: Window) -> None:
        self._reader = reader
        self._window = window
        self._recalled = False
        self._records: dict[str, list[CapacityRecord]] = {}
        self._next: dict[str, str] = {}
        for each in sorted(reader.capacity(window), key=lambda record: record.start_us):
            self._records.setdefault(each.node_uid, []).append(each)
        self._next.update({found[0].continues: uid for uid, found in self._records.items() if found[0].continues})
        self.uids = tuple(self._records)
        """The nodes that offered something in the window."""

    def records(self, uid: str) -> list[CapacityRecord]:
        """The records of a node; none if it was never observed."""
        if uid not in self._records:
            self._recall()
        return self._records.get(uid, [])

    def following(self, uid: str) -> str | None:
        """The node that continues this one, if any."""
        if uid not in self._records:
            self._recall()
        return self._next.get(uid)

    def first(self) -> set[str]:
        """Of each machine, the node that continues no other one."""
        return {*self.uids, *self._next} - {*self._next.values()}

    def moved(self, found: Iterable[NodeSteps]) -> dict[str, list[tuple[int, int]]]:
        """The steps of each node, with those of an earlier one that it continues."""
        steps: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for each in found:
            uid, rest = each.node_uid, list(each.steps)
            while (following := self.following(uid)) is not None:
                born_us = self.records(following)[0].start_us
                passed = bisect_left(rest, born_us, key=lambda step: step[0])
                level = sum(change for _, change in rest[:passed])
                steps[uid] += [*rest[:passed], (born_us, -level)]
                uid, rest = following, [(born_us, level), *rest[passed:]]
            steps[uid] += rest
        return steps

    def _recall(self) -> None:
        """Take the last record of each node that ended before the window."""
        if self._recalled:
            return
        self._recalled = True
        earlier = self._reader.capacity(Window(0, self._window.start_us))
        last = {each.node_uid: each for each in sorted(earlier, key=lambda record: record.start_us)}
        for uid, each in last.items():
            self._records.setdefault(uid, [each])
            if each.continues:
                self._next.setdefault(each.continues, uid)

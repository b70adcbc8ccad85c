"""What pod sizes fit now, by GPU model and pool, and the nodes of jobs: kept up to date node by node."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Final

from msgspec.structs import replace

from gputally.accounting.base.shared import shared
from gputally.accounting.waiting.fit.asked_sizes import AskedSizes
from gputally.accounting.waiting.fit.packing import Packing
from gputally.accounting.waiting.waiting_now import WaitingNow
from gputally.model.pod_record import PodRecord
from gputally.model.pod_sizes import SIZES, Capacity
from gputally.model.rules import Rules
from gputally.placement.fits_now import fits_now
from gputally.placement.node_room import NodeRoom
from gputally.placement.room import Room

NodeLabels = tuple[str, str]
"""The exported GPU model and pool."""
MOST_NODES: Final = 50
"""Changed nodes that are looked at in one step, some 40 µs for each."""
MOST_AT_READ: Final = 16
"""As many at the time of a scrape."""


class Fitting:
    """Sums over all nodes; `fits` are pods by labels and size, `stranded` are free GPUs by labels and reason.

    It `is_complete` once all nodes were looked at; later changes follow within seconds.
    """

    def __init__(
        self, room: Room, rules: Rules, *, pods: Mapping[str, PodRecord], labels_of: Callable[[str], NodeLabels]
    ) -> None:
        self.asked = AskedSizes(room, pods)
        self._sizes = self.asked.read()
        self.fits = Counter[tuple[str, str, int]]()
        self.stranded = Counter[tuple[str, str, str]]()
        self.packing = Packing(room, pods, labels_of)
        self._room = room
        self._labels_of = labels_of
        self._rules = rules
        self.is_complete = False
        self._outdated: set[str] = set()
        self._of: dict[str, tuple[NodeLabels, Capacity]] = {}

    def outdate(self, nodes: Collection[str]) -> None:
        """These nodes, or pods on them, have changed."""
        self._outdated.update(nodes)
        if self.asked.has_changed:
            self.asked.has_changed, self._sizes = False, self.asked.read()
            self._outdated.update(self._of)
        self.packing.nodes_changed(nodes)

    @property
    def is_behind(self) -> bool:
        """Whether nodes or jobs are still to be looked at."""
        return bool(self._outdated) or self.packing.is_behind

    def added_to(self, now: WaitingNow, changed: Collection[str]) -> WaitingNow:
        """With what fits, as agrees with what is free: verdicts follow `changed` nodes later, and the sums at once."""
        self._outdated.update(changed)
        self._look(most=MOST_AT_READ)
        stranded = +self.stranded  # a reason that no GPU has any more would end with the process
        return replace(now, fits=dict(self.fits), stranded=stranded, job_nodes=self.packing.sums())

    def step(self) -> None:
        """Look at some of the nodes, and of the jobs, that have changed."""
        self._look(most=MOST_NODES)
        self.packing.step()

    def _look(self, *, most: int) -> None:
        for _ in range(min(len(self._outdated), most)):
            name = self._outdated.pop()
            if known := self._of.pop(name, None):
                self._add(*known, sign=-1)
            node = self._room.nodes.get(name)
            labels = self._labels_of(name)
            if node and (capacity := self._capacity(node)):
                self._of[name] = shared((labels, capacity))
                self._add(labels, capacity, sign=1)
        if not self._outdated:
            self.is_complete = True
            self._outdated.clear()  # frees the room of all nodes

    def _capacity(self, node: NodeRoom) -> Capacity | None:
        return fits_now(self._room.only(node), lambda _: (), self._rules, sizes=self._sizes).get(())

    def _add(self, labels: NodeLabels, capacity: Capacity, *, sign: int) -> None:
        for size, count in zip(SIZES, capacity.fits, strict=True):
            self.fits[*labels, size] += sign * count
        for why, count in capacity.stranded:
            self.stranded[*labels, why.value] += sign * count

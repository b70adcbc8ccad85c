"""Sums up what pod sizes fit now, by GPU model and pool, and which free GPUs no size that is asked for could use."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from gputally.accounting.base.compact import shared
from gputally.accounting.base.state_part import KeyedPart, no_later
from gputally.accounting.waiting.packing import Packing
from gputally.accounting.waiting.snapshot import PendingSums
from gputally.model.kube.kinds import Limit
from gputally.model.pod_record import PodRecord
from gputally.model.pod_sizes import SIZES, AskedSize, Capacity
from gputally.model.rules import Rules
from gputally.model.units import US_PER_SECOND
from gputally.placement.fits_now import Size, fits_now
from gputally.placement.node_room import NodeRoom
from gputally.placement.resource_requests import amount_of
from gputally.placement.room import Room

WEEK_US: Final = 7 * 24 * 3600 * US_PER_SECOND
_HOUR_US: Final = 3600 * US_PER_SECOND
"""How exact the time of a size is: each later one would be a change of the ledger."""
_WAITING_US: Final = 300 * US_PER_SECOND
"""How long a size counts after a pod of it was last found to wait, which is looked up each minute."""
_LEAST_WAIT_US: Final = 60 * US_PER_SECOND
"""Pods that wait for less are bound soon, and then count where they run."""
_MOST_PODS: Final = 200
"""Pods that are looked at in one step."""
NodeLabels = tuple[str, str]
"""The exported GPU model and pool."""
MOST_NODES: Final = 50
"""Changed nodes that are looked at in one step, some 40 µs for each."""
MOST_AT_READ: Final = 16
"""Changed nodes that are looked at during a scrape."""


class AskedSizes(KeyedPart[AskedSize]):
    """Sizes by GPU model: that of the node where a pod runs, or that a waiting pod selects, "" for any.

    It `has_changed` if other sizes may be known than when somebody last cleared that.
    """

    name = "asked-size"
    document_limit = Limit(None, 256)
    """More sizes than anyone has; pods may ask for any number."""
    kinds = ()

    def __init__(self, room: Room, pods: Mapping[str, PodRecord]) -> None:
        super().__init__()
        self.has_changed = False
        self._room = room
        self._pods = pods
        self._turn: list[str] = []
        self._waiting: dict[Size, int] = {}
        """When a pod of the size was last found to wait."""

    def read(self) -> frozenset[Size]:
        """All of them."""
        ran = {(each.gpu_model, each.resource, each.gpus) for each in self.known.values()}
        return frozenset(ran | self._waiting.keys())

    def pod_changed(self, record: PodRecord, *, at_us: int) -> None:
        """A pod was bound, or runs."""
        node = self._room.nodes.get(record.node)
        place = node.place if node else None
        if record.scheduled_us is None or place is None or not (model := place.asset.gpu_model if place.asset else ""):
            return
        for resource, gpus in record.units:
            key = f"{model}/{resource}/{gpus}"
            known = self.known.get(key)
            if known and at_us < known.at_us + _HOUR_US:  # nearly always
                continue
            if known is None and len(self.known) >= self.document_limit.most:
                return
            if amount_of(resource, gpus) <= dict(place.offered).get(resource, 0):  # a rejected pod may ask for any
                self._store(key, AskedSize(gpu_model=model, resource=resource, gpus=gpus, at_us=at_us))
                self.has_changed |= known is None

    def pods_wait(self, records: Iterable[PodRecord], models: Mapping[str, str], *, at_us: int) -> None:
        """Keep the sizes of pods that still wait; `models` has the nodes' GPU models by the values of their labels."""
        for record in records:
            if at_us < record.created_us + _LEAST_WAIT_US:
                continue
            for resource, gpus in record.units:
                size = models.get(record.selected_model, record.selected_model), resource, gpus
                if size in self._waiting or len(self._waiting) < self.document_limit.most:
                    self.has_changed |= size not in self._waiting
                    self._waiting[size] = at_us

    def advance(self, now_us: int) -> None:
        """See `StatePart.advance`."""
        self._turn = self._turn or list(self._pods)
        for uid in self._turn[-_MOST_PODS:]:
            if (record := self._pods.get(uid)) and record.end_us is None:
                self.pod_changed(record, at_us=now_us)
        del self._turn[-_MOST_PODS:]
        for key in [key for key, each in self.known.items() if each.at_us < now_us - WEEK_US]:
            self._remove(key)
            self.has_changed = True
        for size in [size for size, last_us in self._waiting.items() if last_us < now_us - _WAITING_US]:
            del self._waiting[size]
            self.has_changed = True

    def restore(self, documents: Iterable[AskedSize], *, at_us: int) -> None:
        """See `StatePart.restore`."""
        for each in documents:
            self.known[f"{each.gpu_model}/{each.resource}/{each.gpus}"] = no_later(each, at_us, "at_us")
        self.has_changed = True


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

    def invalidate(self, nodes: Collection[str]) -> None:
        """Mark nodes as changed, by themselves or by pods on them."""
        self._outdated.update(nodes)
        if self.asked.has_changed:
            self.asked.has_changed, self._sizes = False, self.asked.read()
            self._outdated.update(self._of)
        self.packing.nodes_changed(nodes)

    @property
    def is_behind(self) -> bool:
        """Whether nodes or jobs are still to be looked at."""
        return bool(self._outdated) or self.packing.is_behind

    def added_to(self, now: PendingSums, changed: Collection[str]) -> PendingSums:
        """With what fits, as agrees with what is free: verdicts follow `changed` nodes later, and the sums at once."""
        self._outdated.update(changed)
        self._update_fits(most=MOST_AT_READ)
        stranded = +self.stranded  # a reason that no GPU has any more would end with the process
        return replace(now, fits=dict(self.fits), stranded=stranded, job_nodes=self.packing.sums())

    def step(self) -> None:
        """Look at some of the nodes, and of the jobs, that have changed."""
        self._update_fits(most=MOST_NODES)
        self.packing.step()

    def _update_fits(self, *, most: int) -> None:
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

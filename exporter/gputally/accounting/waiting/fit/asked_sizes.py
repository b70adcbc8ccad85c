"""The sizes of pods that wait, or have run in the last week: a free GPU that none of them could use is stranded."""

from collections.abc import Iterable, Mapping
from typing import Final

from gputally.accounting.base.state_part import KeyedPart, no_later
from gputally.model.needs import Place
from gputally.model.pod_record import PodRecord
from gputally.model.pod_sizes import AskedSize
from gputally.model.units import US_PER_SECOND
from gputally.placement.fits_now import Size
from gputally.placement.resource_requests import amount_of
from gputally.placement.room import Room

WEEK_US: Final = 7 * 24 * 3600 * US_PER_SECOND
_HOUR_US: Final = 3600 * US_PER_SECOND
"""How exact the time of a size is: each later one would be a change of the ledger."""
_WAITING_US: Final = 300 * US_PER_SECOND
"""How long a size counts after a pod of it was last found to wait, which is looked up each minute."""
_LEAST_WAIT_US: Final = 60 * US_PER_SECOND
"""Pods that wait for less are bound soon, and then count where they run."""
MOST_SIZES: Final = 256
"""More than anyone has; pods may ask for any number."""
_MOST_PODS: Final = 200
"""Pods that are looked at in one step."""


class AskedSizes(KeyedPart[AskedSize]):
    """Sizes by GPU model: that of the node where a pod runs, or that a waiting pod selects, "" for any.

    It `has_changed` if other sizes may be known than when somebody last cleared that.
    """

    name = "asked-size"
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
        place = self._place_of(record.node)
        if record.scheduled_us is None or place is None or not (model := place.asset.gpu_model if place.asset else ""):
            return
        for resource, gpus in record.units:
            key = f"{model}/{resource}/{gpus}"
            known = self.known.get(key)
            if known and at_us < known.at_us + _HOUR_US:  # nearly always
                continue
            if known is None and len(self.known) >= MOST_SIZES:
                return
            if amount_of(resource, gpus) <= dict(place.offered).get(resource, 0):  # a rejected pod may ask for any
                self._store(key, AskedSize(gpu_model=model, resource=resource, gpus=gpus, at_us=at_us))
                self.has_changed |= known is None

    def pods_wait(self, records: Iterable[PodRecord], models: Mapping[str, str], *, at_us: int) -> None:
        """These pods are still pending; `models` has the GPU models of the nodes, by the values of their labels."""
        for record in records:
            if at_us < record.created_us + _LEAST_WAIT_US:
                continue
            for resource, gpus in record.units:
                size = models.get(record.selected_model, record.selected_model), resource, gpus
                if size in self._waiting or len(self._waiting) < MOST_SIZES:
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

    def _place_of(self, node: str) -> Place | None:
        known = self._room.nodes.get(node)
        return known.place if known else None

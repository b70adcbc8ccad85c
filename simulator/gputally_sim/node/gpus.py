"""The GPUs of one simulated node: what they are, who has them, and what they do."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from uuid import UUID

from gputally_sim.documents import Doc, labels_of
from gputally_sim.node.device_leases import DeviceLease, Grant
from gputally_sim.node.pods import GPU
from gputally_sim.node.utilisation import FULL

_MIB = 1 << 20
_MEMORY_MIB = "81920"
_PRODUCT = "NVIDIA-A100-SXM4-80GB"
_WATTS = {"H100": (70, 700), "A100": (55, 400), "V100": (40, 300), "P100": (30, 250), "T4": (10, 70)}
"""Idle and at most, of the models that have these names in theirs."""
_OTHER_WATTS = (30, 300)
_PER_MILLIJOULE = 10**12


@dataclass(frozen=True)
class SimGpu:
    """A physical GPU; `memory` in bytes, power in mW."""

    uuid: str
    index: int
    model: str
    memory: int
    idle_power: int
    full_power: int

    def power(self, busy: int) -> int:
        """At that utilisation (millionths)."""
        return self.rate(busy) // FULL

    def rate(self, busy: int) -> int:
        """The same in nW, so that nothing is rounded."""
        return self.idle_power * FULL + (self.full_power - self.idle_power) * busy


@dataclass(frozen=True)
class Use:
    """What one pod does with a GPU: how busy it kept it (millionths of the GPU), and its memory at the end (bytes)."""

    uid: str
    busy: int
    memory: int


@dataclass
class Meter:
    """Energy (nW·µs) up to `at_us`."""

    at_us: int
    energy: int = field(default=0)


class GpuNode:
    """Gives devices to pods, each to one at a time, and answers for any time that is not forgotten.

    Each GPU is `units` devices of `resource`: itself, or so many replicas of it. Who finds none is given the next that
    is free.
    """

    def __init__(self, doc: Doc, now_us: int) -> None:
        self.name: str = doc["metadata"]["name"]
        self.joined_us = now_us
        self.resource, count, self.units = _offer(doc)
        self.gpus = tuple(_gpu(doc, index) for index in range(count))
        self.lost: set[int] = set()
        """Indexes of GPUs that have fallen off the bus: a fault to be set, and mended, by hand."""
        self._free = {index: list(range(self.units)) for index in range(count)}
        self._tenancies: dict[str, DeviceLease] = {}
        self._ended: list[DeviceLease] = []
        self._meters = [Meter(now_us) for _ in self.gpus]

    def device_id(self, index: int, unit: int) -> str:
        """As NVIDIA's device plugin names it."""
        uuid = self.gpus[index].uuid
        return uuid if self.units == 1 else f"{uuid}::{unit}"

    def device_ids(self) -> frozenset[str]:
        """All that there are."""
        return frozenset(self.device_id(gpu.index, unit) for gpu in self.gpus for unit in range(self.units))

    def bind(self, tenancy: DeviceLease, now_us: int) -> None:
        """The pod is to have what it wants, at once or as soon as that is free."""
        if tenancy.wants:
            self._tenancies[tenancy.uid] = tenancy
            self._grant(tenancy, now_us)

    def started(self, uid: str, now_us: int) -> None:
        """The pod's containers run."""
        tenancy = self._tenancies.get(uid)
        if tenancy and tenancy.started_us is None:
            tenancy.started_us = now_us

    def release(self, uid: str, now_us: int) -> None:
        """The pod's containers have ended."""
        tenancy = self._tenancies.pop(uid, None)
        if tenancy is None:
            return
        tenancy.until_us = now_us
        self._ended.append(tenancy)
        for grant in tenancy.grants:
            self._free[grant.gpu].append(grant.unit)
        for waiting in self._tenancies.values():
            if not waiting.grants:
                self._grant(waiting, now_us)

    def assignments(self, at_us: int) -> list[DeviceLease]:
        """The pods that have devices at that time, in no order that means anything."""
        return [each for each in self._all() if each.holds(at_us)]

    def changes(self, after_us: int, upto_us: int) -> list[int]:
        """When, up to and with `upto_us`, others had devices than before; where pods share GPUs, or used them so."""
        found = {us for each in self._all() for us in each.changes(after_us, upto_us + 1, curve=self.units > 1)}
        return sorted(us for us in found if after_us < us <= upto_us)

    def spans(self, index: int, from_us: int, to_us: int) -> Iterator[tuple[int, int, int]]:
        """(from, to, millionths), one after the other: how busy the GPU was."""
        present = self._on(index, from_us, to_us)
        cuts = {us for each, _ in present for us in each.changes(from_us, to_us, curve=True)}
        for start_us, end_us in pairwise(sorted({from_us, to_us, *cuts})):
            yield start_us, end_us, sum(each.busy(start_us) * units // self.units for each, units in present)

    def uses(self, index: int, from_us: int, to_us: int) -> list[Use]:
        """What each pod did with it, on average."""
        return [self._use(each, units, index, (from_us, to_us)) for each, units in self._on(index, from_us, to_us)]

    def energy(self, index: int, at_us: int) -> int:
        """What the GPU has taken since the node came, in mJ."""
        return self._energy(index, at_us) // _PER_MILLIJOULE

    def forget(self, before_us: int) -> None:
        """Nobody will ask for what was before."""
        for index, meter in enumerate(self._meters):
            if meter.at_us < before_us:
                meter.energy, meter.at_us = self._energy(index, before_us), before_us
        self._ended = [each for each in self._ended if each.until_us is not None and each.until_us > before_us]

    def _all(self) -> Iterator[DeviceLease]:
        yield from self._ended
        yield from self._tenancies.values()

    def _on(self, index: int, from_us: int, to_us: int) -> list[tuple[DeviceLease, int]]:
        """Who had how many of its devices in that time."""
        return [(each, units) for each in self._all() if each.met(from_us, to_us) and (units := each.units_of(index))]

    def _use(self, tenancy: DeviceLease, units: int, index: int, span: tuple[int, int]) -> Use:
        from_us, to_us = span
        cuts = sorted({from_us, to_us, *tenancy.changes(from_us, to_us, curve=True)})
        busy = sum(tenancy.busy(start_us) * (end_us - start_us) for start_us, end_us in pairwise(cuts))
        memory = tenancy.memory(to_us - 1) * self.gpus[index].memory // FULL
        return Use(tenancy.uid, busy * units // self.units // max(1, to_us - from_us), memory * units // self.units)

    def _energy(self, index: int, at_us: int) -> int:
        meter, gpu = self._meters[index], self.gpus[index]
        since = sum(
            gpu.rate(busy) * (to_us - from_us) for from_us, to_us, busy in self.spans(index, meter.at_us, at_us)
        )
        return meter.energy + since

    def _grant(self, tenancy: DeviceLease, now_us: int) -> None:
        """All that it wants, of as few GPUs as can be, or nothing."""
        wanted = sum(tenancy.wants.values())
        if not wanted or wanted > sum(map(len, self._free.values())):
            return
        units = iter(self._take(wanted))
        tenancy.grants = tuple(
            Grant(container, *next(units)) for container, count in tenancy.wants.items() for _ in range(count)
        )
        tenancy.from_us = now_us

    def _take(self, wanted: int) -> Iterator[tuple[int, int]]:
        """Best fit: of the GPUs with room for all of it the fullest, else the emptiest, and so on."""
        while wanted:
            fitting = [index for index, free in self._free.items() if len(free) >= wanted]
            if fitting:
                index = min(fitting, key=lambda index: len(self._free[index]))
            else:
                index = max(self._free, key=lambda index: len(self._free[index]))
            taken = sorted(self._free[index])[:wanted]
            self._free[index] = [unit for unit in self._free[index] if unit not in taken]
            wanted -= len(taken)
            yield from ((index, unit) for unit in taken)


def has_gpus(doc: Doc) -> bool:
    """Whether the node has any."""
    return _offer(doc)[1] > 0


def _offer(doc: Doc) -> tuple[str, int, int]:
    """The resource its GPUs are offered as, how many GPUs these are, and of how many devices each."""
    capacity: Mapping[str, str] = doc.get("status", {}).get("capacity", {})
    offered = {name: int(count) for name, count in capacity.items() if "/" in name and str(count).isdigit()}
    resource = GPU if offered.get(GPU) else next((name for name, count in offered.items() if count), "")
    devices = offered.get(resource, 0)
    label = labels_of(doc).get("nvidia.com/gpu.count", "")
    gpus = min(int(label), devices) if label.isdigit() else devices
    return resource, gpus, devices // gpus if gpus else 1


def _gpu(doc: Doc, index: int) -> SimGpu:
    labels, name = labels_of(doc), doc["metadata"]["name"]
    model = labels.get("nvidia.com/gpu.product", _PRODUCT)
    idle, full = next((watts for part, watts in _WATTS.items() if part in model), _OTHER_WATTS)
    uuid = UUID(bytes=blake2b(f"{name}/{index}".encode(), digest_size=16).digest())
    memory = int(labels.get("nvidia.com/gpu.memory", _MEMORY_MIB)) * _MIB
    return SimGpu(f"GPU-{uuid}", index, model, memory, idle * 1000, full * 1000)

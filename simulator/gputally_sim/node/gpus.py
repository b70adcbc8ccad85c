"""The GPUs of one simulated node: properties, allocation and usage."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from uuid import UUID

from gputally_sim.documents import Doc, labels_of
from gputally_sim.node.device_leases import DeviceLease, Grant
from gputally_sim.node.pods import GPU
from gputally_sim.node.utilisation import FULL

CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"
_MIB = 1 << 20
_MEMORY_MIB = "81920"
_PRODUCT = "NVIDIA-A100-SXM4-80GB"
_WATTS = {"H100": (70, 700), "A100": (55, 400), "V100": (40, 300), "P100": (30, 250), "T4": (10, 70)}
"""Idle and maximum power of models whose names contain these parts."""
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
        """Power in mW at that utilization (millionths)."""
        return self.rate(busy) // FULL

    def rate(self, busy: int) -> int:
        """The same in nW, which is exact."""
        return self.idle_power * FULL + (self.full_power - self.idle_power) * busy


@dataclass(frozen=True)
class Use:
    """A pod's usage of a GPU: mean utilization (millionths of the GPU), and memory at the end (bytes)."""

    uid: str
    busy: int
    memory: int


@dataclass
class Meter:
    """Energy consumed (nW·µs) up to `at_us`."""

    at_us: int
    energy: int = field(default=0)


class GpuNode:
    """Allocates devices exclusively to pods, and reports usage for any time after the last `forget`.

    Each GPU is `units` devices of `resource`: the GPU itself, or its replicas. Pods wait if there are too few free
    devices.
    """

    def __init__(self, doc: Doc, now_us: int) -> None:
        self.name: str = doc["metadata"]["name"]
        self.joined_us = now_us
        self.resource, count, self.units = _offer(doc)
        self._is_gke = CLIENTS in labels_of(doc)
        self.gpus = tuple(_gpu(doc, index) for index in range(count))
        self.lost: set[int] = set()
        """Indexes of GPUs that have fallen off the bus; set and cleared by callers."""
        self._free = {index: list(range(self.units)) for index in range(count)}
        self._leases: dict[str, DeviceLease] = {}
        self._ended: list[DeviceLease] = []
        self._meters = [Meter(now_us) for _ in self.gpus]

    def device_id(self, index: int, unit: int) -> str:
        """The device ID in the format of NVIDIA's device plugin, or of GKE's on a node that says how it is shared."""
        if self._is_gke:
            return f"nvidia{index}/vgpu{unit}"
        uuid = self.gpus[index].uuid
        return uuid if self.units == 1 else f"{uuid}::{unit}"

    def device_ids(self) -> frozenset[str]:
        """All device IDs."""
        return frozenset(self.device_id(gpu.index, unit) for gpu in self.gpus for unit in range(self.units))

    def bind(self, lease: DeviceLease, now_us: int) -> None:
        """Allocate the pod's devices now, or when they are free."""
        if lease.wants:
            self._leases[lease.uid] = lease
            self._grant(lease, now_us)

    def started(self, uid: str, now_us: int) -> None:
        """Record the start of the pod's containers."""
        lease = self._leases.get(uid)
        if lease and lease.started_us is None:
            lease.started_us = now_us

    def release(self, uid: str, now_us: int) -> None:
        """Release the devices after the pod's containers have ended."""
        lease = self._leases.pop(uid, None)
        if lease is None:
            return
        lease.until_us = now_us
        self._ended.append(lease)
        for grant in lease.grants:
            self._free[grant.gpu].append(grant.unit)
        for waiting in self._leases.values():
            if not waiting.grants:
                self._grant(waiting, now_us)

    def assignments(self, at_us: int) -> list[DeviceLease]:
        """The leases at that time, unordered."""
        return [each for each in self._all() if each.holds(at_us)]

    def changes(self, after_us: int, upto_us: int) -> list[int]:
        """Times in (after_us, upto_us] at which allocations changed; for shared GPUs, also utilization."""
        found = {us for each in self._all() for us in each.changes(after_us, upto_us + 1, curve=self.units > 1)}
        return sorted(us for us in found if after_us < us <= upto_us)

    def spans(self, index: int, from_us: int, to_us: int) -> Iterator[tuple[int, int, int]]:
        """Consecutive (from, to, utilization in millionths) of the GPU."""
        present = self._on(index, from_us, to_us)
        cuts = {us for each, _ in present for us in each.changes(from_us, to_us, curve=True)}
        for start_us, end_us in pairwise(sorted({from_us, to_us, *cuts})):
            yield start_us, end_us, sum(each.busy(start_us) * units // self.units for each, units in present)

    def uses(self, index: int, from_us: int, to_us: int) -> list[Use]:
        """Each pod's mean usage of the GPU."""
        return [self._use(each, units, index, (from_us, to_us)) for each, units in self._on(index, from_us, to_us)]

    def energy(self, index: int, at_us: int) -> int:
        """Energy consumed by the GPU since the node joined, in mJ."""
        return self._energy(index, at_us) // _PER_MILLIJOULE

    def forget(self, before_us: int) -> None:
        """Discard data before `before_us`."""
        for index, meter in enumerate(self._meters):
            if meter.at_us < before_us:
                meter.energy, meter.at_us = self._energy(index, before_us), before_us
        self._ended = [each for each in self._ended if each.until_us is not None and each.until_us > before_us]

    def _all(self) -> Iterator[DeviceLease]:
        yield from self._ended
        yield from self._leases.values()

    def _on(self, index: int, from_us: int, to_us: int) -> list[tuple[DeviceLease, int]]:
        """Leases on the GPU in that interval, with their number of devices."""
        return [
            (each, units) for each in self._all() if each.overlaps(from_us, to_us) and (units := each.units_of(index))
        ]

    def _use(self, lease: DeviceLease, units: int, index: int, span: tuple[int, int]) -> Use:
        from_us, to_us = span
        cuts = sorted({from_us, to_us, *lease.changes(from_us, to_us, curve=True)})
        busy = sum(lease.busy(start_us) * (end_us - start_us) for start_us, end_us in pairwise(cuts))
        memory = lease.memory(to_us - 1) * self.gpus[index].memory // FULL
        return Use(lease.uid, busy * units // self.units // max(1, to_us - from_us), memory * units // self.units)

    def _energy(self, index: int, at_us: int) -> int:
        meter, gpu = self._meters[index], self.gpus[index]
        since = sum(
            gpu.rate(busy) * (to_us - from_us) for from_us, to_us, busy in self.spans(index, meter.at_us, at_us)
        )
        return meter.energy + since

    def _grant(self, lease: DeviceLease, now_us: int) -> None:
        """Allocate all wanted devices on as few GPUs as possible, or none."""
        wanted = sum(lease.wants.values())
        if not wanted or wanted > sum(map(len, self._free.values())):
            return
        units = iter(self._take(wanted))
        lease.grants = tuple(
            Grant(container, *next(units)) for container, count in lease.wants.items() for _ in range(count)
        )
        lease.from_us = now_us

    def _take(self, wanted: int) -> Iterator[tuple[int, int]]:
        """Best fit: the fullest GPU with room for all devices, else the emptiest GPU, repeatedly."""
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
    """Whether the node has GPUs."""
    return _offer(doc)[1] > 0


def _offer(doc: Doc) -> tuple[str, int, int]:
    """The resource name, number of GPUs, and devices per GPU."""
    capacity: Mapping[str, str] = doc.get("status", {}).get("capacity", {})
    offered = {name: int(count) for name, count in capacity.items() if "/" in name and str(count).isdigit()}
    resource = GPU if offered.get(GPU) else next((name for name, count in offered.items() if count), "")
    devices = offered.get(resource, 0)
    label, clients = (labels_of(doc).get(key, "") for key in ("nvidia.com/gpu.count", CLIENTS))
    gpus = min(int(label), devices) if label.isdigit() else devices // int(clients or 1)
    return resource, gpus, devices // gpus if gpus else 1


def _gpu(doc: Doc, index: int) -> SimGpu:
    labels, name = labels_of(doc), doc["metadata"]["name"]
    model = labels.get("nvidia.com/gpu.product", _PRODUCT)
    idle, full = next((watts for part, watts in _WATTS.items() if part in model), _OTHER_WATTS)
    uuid = UUID(bytes=blake2b(f"{name}/{index}".encode(), digest_size=16).digest())
    memory = int(labels.get("nvidia.com/gpu.memory", _MEMORY_MIB)) * _MIB
    return SimGpu(f"GPU-{uuid}", index, model, memory, idle * 1000, full * 1000)

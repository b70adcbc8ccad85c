"""The driver's GPU parts by the kubelet's device IDs: which are allocated, and which can be."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from msgspec.structs import replace

from gputally.devices.kubelet.device_assignments import DeviceAssignment, DeviceId, parse
from gputally.model.devices import PartAllocation, PartAllocations, Reading

Allocatable: TypeAlias = Mapping[str, frozenset[str]]
"""IDs of healthy devices by resource, allocated or not."""


class Parts:
    """The GPU parts of the last reading, indexed by every form of device ID."""

    def __init__(self, readings: Iterable[Reading]) -> None:
        self._uuids: set[str] = set()
        self._gpus: dict[int, str] = {}
        self._instances: dict[tuple[str, int | None, int | None], str] = {}
        self._starts: dict[tuple[str, int | None], str] = {}
        for reading in readings:
            if reading.gpu.minor is not None:
                self._gpus[reading.gpu.minor] = reading.gpu.uuid
            for part in reading.parts:
                self._uuids.add(part.uuid)
                if reading.mig:
                    self._instances[reading.gpu.uuid, part.gi, part.ci] = part.uuid
                    self._instances.setdefault((reading.gpu.uuid, part.gi, None), part.uuid)
                    self._starts[reading.gpu.uuid, part.placement] = part.uuid

    def __contains__(self, uuid: str) -> bool:
        return uuid in self._uuids

    def find(self, device: DeviceId) -> str | None:
        """UUID of the part that `device` identifies; None if no GPU of this node has it."""
        if device.uuid in self._uuids:
            return device.uuid
        gpu = device.uuid or self._gpus.get(-1 if device.minor is None else device.minor, "")
        if device.gi is not None:
            return self._instances.get((gpu, device.gi, device.ci))
        if device.start is not None:
            return self._starts.get((gpu, device.start))
        return gpu if gpu in self._uuids else None


def allocations(
    assignments: Iterable[DeviceAssignment], replicas: Mapping[str, int], parts: Parts, *, at_us: int
) -> PartAllocations:
    """The container that holds each part. A device that matches no GPU of this node counts as unknown.

    `replicas` is the number of replicas of each part. For others, the highest observed replica number counts.
    """
    replica_counts: dict[str, int] = {}
    held: Counter[PartAllocation] = Counter()
    unknown = 0
    for assignment in assignments:
        part = parts.find(assignment.device)
        if part is None:
            unknown += 1
            continue
        if assignment.device.replica is not None:
            replica_counts[part] = max(replica_counts.get(part, 0), assignment.device.replica + 1)
        held[_allocation(assignment, part)] += 1
    shared = {part: replicas.get(part, replica_counts[part]) for part in replica_counts}
    return PartAllocations(
        at_us=at_us,
        held=tuple(sorted(_with_replicas(each, count, shared.get(each.part)) for each, count in held.items())),
        unknown=unknown,
    )


def _allocation(assignment: DeviceAssignment, part: str) -> PartAllocation:
    return PartAllocation(
        part=part,
        namespace=assignment.namespace,
        pod=assignment.pod,
        container=assignment.container,
        resource=assignment.resource or assignment.driver,
        unit=assignment.unit,
    )


def _with_replicas(held: PartAllocation, count: int, total: int | None) -> PartAllocation:
    """Set the replica counts. A part without replicas counts as one of one, however often it is reported."""
    return held if total is None else replace(held, replicas=count, replicas_in_all=max(total, count))


class Offer:
    """`replicas` is the number of replicas of each replicated part; `unhealthy` are parts no longer offered.

    A part that was never offered may be allocated by other means, such as claims, and is not unhealthy.
    """

    def __init__(self) -> None:
        self.replicas: dict[str, int] = {}
        self.unhealthy: frozenset[str] = frozenset()
        self._ever_offered: frozenset[str] = frozenset()

    def update(self, allocatable: Allocatable, parts: Parts, *, held: Collection[str]) -> None:
        """Apply a kubelet reply. The replica count of a part in `held` never decreases."""
        counts, offered = Counter[str](), set[str]()
        for device in (parse(each) for ids in allocatable.values() for each in ids):
            part = parts.find(device)
            if part:
                offered.add(part)
                counts[part] += device.replica is not None
        kept = {part: count for part, count in self.replicas.items() if part in parts and part not in offered}
        reported = {
            part: max(count, self.replicas.get(part, 0)) if part in held else count
            for part, count in counts.items()
            if count
        }
        self.replicas = kept | reported
        self._ever_offered = frozenset(part for part in self._ever_offered | offered if part in parts)
        self.unhealthy = self._ever_offered - offered

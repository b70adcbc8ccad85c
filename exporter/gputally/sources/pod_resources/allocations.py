"""From what the kubelet names to the parts of GPUs that the driver knows."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec.structs import replace

from gputally.model.device import Allocations, Held, Reading
from gputally.sources.pod_resources.device_ids import DeviceId, parse
from gputally.sources.pod_resources.holdings import Holding

Allocatable: TypeAlias = Mapping[str, frozenset[str]]
"""Device ids by resource."""


class Parts:
    """The parts of the GPUs as last read, by everything a device id can name them by."""

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

    def find(self, device: DeviceId) -> str | None:
        """The UUID of the part that `device` names; None when no GPU here has it."""
        if device.uuid in self._uuids:
            return device.uuid
        gpu = device.uuid or self._gpus.get(-1 if device.minor is None else device.minor, "")
        if device.gi is not None:
            return self._instances.get((gpu, device.gi, device.ci))
        if device.start is not None:
            return self._starts.get((gpu, device.start))
        return gpu if gpu in self._uuids else None


def offered(allocatable: Allocatable, parts: Parts) -> frozenset[str]:
    """The parts of which the kubelet can allocate anything, held or not: what is unhealthy is not among them."""
    found = (parts.find(parse(device)) for devices in allocatable.values() for device in devices)
    return frozenset(part for part in found if part)


def allocations(
    holdings: Iterable[Holding], allocatable: Allocatable | None, parts: Parts, *, at_us: int
) -> Allocations:
    """Who holds which part. A device that no GPU here has is counted as unknown.

    How many replicas a part has is what the kubelet says it can allocate, held or not; where it does not say, the
    highest number seen tells.
    """
    holdings = list(holdings)
    replicas = _replicas(allocatable or {}, parts)
    seen: dict[str, int] = {}
    held: Counter[Held] = Counter()
    unknown = 0
    for holding in holdings:
        part = parts.find(holding.device)
        if part is None:
            unknown += 1
            continue
        if holding.device.replica is not None:
            seen[part] = max(seen.get(part, 0), holding.device.replica + 1)
        held[_held(holding, part)] += 1
    shared = {part: replicas.get(part, seen[part]) for part in seen}
    return Allocations(
        at_us=at_us,
        held=tuple(sorted(_sized(each, count, shared.get(each.part)) for each, count in held.items())),
        unknown=unknown,
    )


def _held(holding: Holding, part: str) -> Held:
    return Held(
        part=part,
        namespace=holding.namespace,
        pod=holding.pod,
        container=holding.container,
        resource=holding.resource or holding.driver,
    )


def _sized(held: Held, count: int, in_all: int | None) -> Held:
    """So many replicas; a whole part is one of one, however often it is told of."""
    return held if in_all is None else replace(held, replicas=count, replicas_in_all=max(in_all, count))


def _replicas(allocatable: Allocatable, parts: Parts) -> dict[str, int]:
    """How many replicas of each part there are, of those that are replicated."""
    counts: Counter[str] = Counter()
    for ids in allocatable.values():
        for device in map(parse, ids):
            if device.replica is not None and (part := parts.find(device)):
                counts[part] += 1
    return dict(counts)

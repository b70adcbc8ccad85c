"""From what the kubelet names to the parts of GPUs that the driver knows."""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from gputally.devices.kubelet.device_assignments import DeviceAssignment
from gputally.devices.kubelet.parts import Parts
from gputally.model.measured.device import PartAllocation, PartAllocations


def allocations(
    assignments: Iterable[DeviceAssignment], replicas: Mapping[str, int], parts: Parts, *, at_us: int
) -> PartAllocations:
    """Who holds which part. A device that no GPU here has is counted as unknown.

    `replicas` are how many there are of each part; of one that is not among them the highest number seen tells.
    """
    seen: dict[str, int] = {}
    held: Counter[PartAllocation] = Counter()
    unknown = 0
    for assignment in assignments:
        part = parts.find(assignment.device)
        if part is None:
            unknown += 1
            continue
        if assignment.device.replica is not None:
            seen[part] = max(seen.get(part, 0), assignment.device.replica + 1)
        held[_held(assignment, part)] += 1
    shared = {part: replicas.get(part, seen[part]) for part in seen}
    return PartAllocations(
        at_us=at_us,
        held=tuple(sorted(_sized(each, count, shared.get(each.part)) for each, count in held.items())),
        unknown=unknown,
    )


def _held(assignment: DeviceAssignment, part: str) -> PartAllocation:
    return PartAllocation(
        part=part,
        namespace=assignment.namespace,
        pod=assignment.pod,
        container=assignment.container,
        resource=assignment.resource or assignment.driver,
        unit=assignment.unit,
    )


def _sized(held: PartAllocation, count: int, in_all: int | None) -> PartAllocation:
    """So many replicas; a whole part is one of one, however often it is told of."""
    return held if in_all is None else replace(held, replicas=count, replicas_in_all=max(in_all, count))

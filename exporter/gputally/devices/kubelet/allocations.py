"""Map the kubelet's device assignments to GPU parts known to the driver."""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from gputally.devices.kubelet.device_assignments import DeviceAssignment
from gputally.devices.kubelet.parts import Parts
from gputally.model.devices import PartAllocation, PartAllocations


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

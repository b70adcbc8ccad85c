"""From what the kubelet names to the parts of GPUs that the driver knows."""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from gputally.devices.kubelet.holdings import Holding
from gputally.devices.kubelet.parts import Parts
from gputally.model.measured.device import PartAllocation, PartAllocations


def allocations(
    holdings: Iterable[Holding], replicas: Mapping[str, int], parts: Parts, *, at_us: int
) -> PartAllocations:
    """Who holds which part. A device that no GPU here has is counted as unknown.

    `replicas` are how many there are of each part; of one that is not among them the highest number seen tells.
    """
    seen: dict[str, int] = {}
    held: Counter[PartAllocation] = Counter()
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
    return PartAllocations(
        at_us=at_us,
        held=tuple(sorted(_sized(each, count, shared.get(each.part)) for each, count in held.items())),
        unknown=unknown,
    )


def _held(holding: Holding, part: str) -> PartAllocation:
    return PartAllocation(
        part=part,
        namespace=holding.namespace,
        pod=holding.pod,
        container=holding.container,
        resource=holding.resource or holding.driver,
        unit=holding.unit,
    )


def _sized(held: PartAllocation, count: int, in_all: int | None) -> PartAllocation:
    """So many replicas; a whole part is one of one, however often it is told of."""
    return held if in_all is None else replace(held, replicas=count, replicas_in_all=max(in_all, count))

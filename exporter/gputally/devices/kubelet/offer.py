"""What the kubelet can allocate, remembered over the moments in which a device plugin is away."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TypeAlias

from gputally.devices.kubelet.device_ids import parse
from gputally.devices.kubelet.parts import Parts

Allocatable: TypeAlias = Mapping[str, frozenset[str]]
"""Device ids by resource, held or not, those of unhealthy devices left out."""


class Offer:
    """`replicas` are how many there are of each part that is replicated; `unhealthy` are parts no longer offered.

    What was never offered may be given out by other means, such as claims, and is not unhealthy.
    """

    def __init__(self) -> None:
        self.replicas: dict[str, int] = {}
        self.unhealthy: frozenset[str] = frozenset()
        self._once: frozenset[str] = frozenset()

    def told(self, allocatable: Allocatable, parts: Parts, *, held: Collection[str]) -> None:
        """Take in an answer. Of a part that somebody holds there are as many replicas as there ever were."""
        counts, offered = Counter[str](), set[str]()
        for device in (parse(each) for ids in allocatable.values() for each in ids):
            part = parts.find(device)
            if part:
                offered.add(part)
                counts[part] += device.replica is not None
        known = {part: count for part, count in self.replicas.items() if part in parts and part not in offered}
        told = {
            part: max(count, self.replicas.get(part, 0)) if part in held else count
            for part, count in counts.items()
            if count
        }
        self.replicas = known | told
        self._once = frozenset(part for part in self._once | offered if part in parts)
        self.unhealthy = self._once - offered

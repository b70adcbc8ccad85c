"""Devices the kubelet can allocate, kept while a device plugin is briefly unavailable."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TypeAlias

from gputally.devices.kubelet.device_ids import parse
from gputally.devices.kubelet.parts import Parts

Allocatable: TypeAlias = Mapping[str, frozenset[str]]
"""IDs of healthy devices by resource, allocated or not."""


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

"""Parts of a GPU, with their weights and watermarks."""

from collections.abc import Sequence

from msgspec import Struct

from gputally.metering.apportion import apportion
from gputally.model.devices import Part
from gputally.model.units import GPU


class Slot(Struct, eq=False, gc=False):
    """A part of `weight` µGPU whose utilisation is accounted up to `watermark_us`."""

    uuid: str
    weight: int
    watermark_us: int


class Layout:
    """The current parts of a GPU, and the `unsliced` rest in µGPU. The weights never add up to more than the GPU."""

    def __init__(self) -> None:
        self.slots: dict[str, Slot] = {}
        self.unsliced = GPU
        self._reported: list[tuple[str, int]] = []

    def update(self, parts: Sequence[Part], *, at_us: int) -> bool:
        """Replace the parts; new parts start at `at_us`. Returns whether anything changed."""
        reported = [(part.uuid, part.weight) for part in parts]
        if reported == self._reported:
            return False
        self._reported = reported
        weights = _weights({uuid: max(0, weight) for uuid, weight in reported})
        known = self.slots
        self.slots = {uuid: Slot(uuid, weight, _watermark(known.get(uuid), at_us)) for uuid, weight in weights.items()}
        self.unsliced = GPU - sum(weights.values())
        return True

    def restart(self, at_us: int) -> None:
        """Skip all utilisation before `at_us`."""
        for slot in self.slots.values():
            slot.watermark_us = at_us

    def watermark_us(self, at_us: int) -> int:
        """The time up to which all parts are accounted; `at_us` if there are none."""
        return min((slot.watermark_us for slot in self.slots.values()), default=at_us)


def _watermark(slot: Slot | None, at_us: int) -> int:
    return slot.watermark_us if slot else at_us


def _weights(weights: dict[str, int]) -> dict[str, int]:
    if sum(weights.values()) <= GPU:
        return weights
    return dict(zip(weights, apportion(GPU, [*weights.values()]), strict=True))

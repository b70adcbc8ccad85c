"""The parts of a GPU: what they weigh, and up to when each is accounted."""

from collections.abc import Sequence

from msgspec import Struct

from gputally.metering.apportion import apportion
from gputally.model.measured.device import Part
from gputally.model.units import GPU


class Slot(Struct, eq=False, gc=False):
    """A part that weighs `weight` µGPU, accounted up to `upto_us`."""

    uuid: str
    weight: int
    upto_us: int


class Layout:
    """What a GPU is divided into; what it leaves uncovered is `unsliced` µGPU. The weights never exceed the GPU."""

    def __init__(self) -> None:
        self.slots: dict[str, Slot] = {}
        self.unsliced = GPU
        self._told: list[tuple[str, int]] = []

    def become(self, parts: Sequence[Part], *, at_us: int) -> bool:
        """Take over how the GPU is divided now; parts that are new begin at `at_us`. Whether anything changed."""
        told = [(part.uuid, part.weight) for part in parts]
        if told == self._told:
            return False
        self._told = told
        weights = _weights({uuid: max(0, weight) for uuid, weight in told})
        known = self.slots
        self.slots = {uuid: Slot(uuid, weight, _upto(known.get(uuid), at_us)) for uuid, weight in weights.items()}
        self.unsliced = GPU - sum(weights.values())
        return True

    def begin_anew(self, at_us: int) -> None:
        """What was before `at_us` will not be accounted any more."""
        for slot in self.slots.values():
            slot.upto_us = at_us

    def watermark_us(self, at_us: int) -> int:
        """Up to when all parts are accounted; `at_us` if there are none."""
        return min((slot.upto_us for slot in self.slots.values()), default=at_us)


def _upto(slot: Slot | None, at_us: int) -> int:
    return slot.upto_us if slot else at_us


def _weights(weights: dict[str, int]) -> dict[str, int]:
    if sum(weights.values()) <= GPU:
        return weights
    return dict(zip(weights, apportion(GPU, [*weights.values()]), strict=True))

"""The allocation of a node's devices to a pod over time."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from gputally_sim.documents import Doc, key_of, uid_of
from gputally_sim.naming import choices
from gputally_sim.node.pods import extended
from gputally_sim.node.utilisation import FULL, Curve, curve_of


class Grant(NamedTuple):
    """One allocated device: the container, the GPU's index, and the unit of the GPU."""

    container: str
    gpu: int
    unit: int


@dataclass
class DeviceLease:
    """The devices allocated to a pod, from `from_us` until its containers end; they are used while containers run.

    `wants` is the number of devices by container. Times in the future are None.
    """

    uid: str
    namespace: str
    pod: str
    wants: Mapping[str, int]
    curve: Curve
    memory_share: int
    """Used share of the devices' memory while its containers run, in millionths."""
    grants: tuple[Grant, ...] = ()
    from_us: int | None = None
    started_us: int | None = None
    until_us: int | None = None

    def holds(self, at_us: int) -> bool:
        """Whether the devices are allocated at that time."""
        return self.from_us is not None and self.from_us <= at_us and (self.until_us is None or at_us < self.until_us)

    def overlaps(self, from_us: int, to_us: int) -> bool:
        """Whether the devices are allocated at any time in the interval."""
        return self.from_us is not None and self.from_us < to_us and (self.until_us is None or from_us < self.until_us)

    def runs(self, at_us: int) -> bool:
        """Whether the containers run at that time."""
        return self.started_us is not None and self.started_us <= at_us and self.holds(at_us)

    def busy(self, at_us: int) -> int:
        """Utilization of the devices, in millionths."""
        return self.curve.at(at_us - self.started_us) if self.started_us is not None and self.runs(at_us) else 0

    def memory(self, at_us: int) -> int:
        """Memory usage of the devices, in millionths."""
        return self.memory_share if self.runs(at_us) else 0

    def units_of(self, gpu: int) -> int:
        """Number of devices of that GPU in the lease."""
        return self._units[gpu]

    def changes(self, after_us: int, before_us: int, *, curve: bool) -> Iterator[int]:
        """Times of the lease's start and end in the interval; with `curve`, also of utilization changes."""
        marks = (self.from_us, self.until_us, self.started_us if curve else None)
        yield from (us for us in marks if us is not None and after_us < us < before_us)
        if curve and self.started_us is not None:
            began_us, until_us = self.started_us, before_us if self.until_us is None else min(before_us, self.until_us)
            for us in self.curve.cuts(max(0, after_us - began_us), max(0, until_us - began_us)):
                yield began_us + us

    @cached_property
    def _units(self) -> Counter[int]:
        return Counter(grant.gpu for grant in self.grants)


def lease_of(pod: Doc, resource: str, seed: int) -> DeviceLease:
    """A lease for a pod on a node with that resource; `seed` determines unspecified values."""
    namespace, name = key_of(pod)
    wants = {each["name"]: count for each in pod["spec"]["containers"] if (count := extended(each)[resource])}
    return DeviceLease(
        uid=uid_of(pod),
        namespace=namespace,
        pod=name,
        wants=wants,
        curve=curve_of(pod, seed),
        memory_share=choices(seed, "memory", uid_of(pod)).randint(FULL // 10, FULL * 9 // 10),
    )

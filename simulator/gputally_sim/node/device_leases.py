"""A pod's time with devices of a node."""

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
    """One device: which unit of which GPU of the node, and the container that has it."""

    container: str
    gpu: int
    unit: int


@dataclass
class DeviceLease:
    """What a pod was granted it has from `from_us` until its containers have ended; it uses that once they run.

    `wants` is a number of devices by container. Times are None as long as they lie ahead.
    """

    uid: str
    namespace: str
    pod: str
    wants: Mapping[str, int]
    curve: Curve
    memory_share: int
    """Millionths of the memory of what it has, while its containers run."""
    grants: tuple[Grant, ...] = ()
    from_us: int | None = None
    started_us: int | None = None
    until_us: int | None = None

    def holds(self, at_us: int) -> bool:
        """Whether it has its devices then."""
        return self.from_us is not None and self.from_us <= at_us and (self.until_us is None or at_us < self.until_us)

    def met(self, from_us: int, to_us: int) -> bool:
        """Whether it has its devices in any of that time."""
        return self.from_us is not None and self.from_us < to_us and (self.until_us is None or from_us < self.until_us)

    def runs(self, at_us: int) -> bool:
        """Whether its containers run then."""
        return self.started_us is not None and self.started_us <= at_us and self.holds(at_us)

    def busy(self, at_us: int) -> int:
        """How busy it keeps what it has, in millionths."""
        return self.curve.at(at_us - self.started_us) if self.started_us is not None and self.runs(at_us) else 0

    def memory(self, at_us: int) -> int:
        """How full it keeps what it has, in millionths."""
        return self.memory_share if self.runs(at_us) else 0

    def units_of(self, gpu: int) -> int:
        """How many devices of that GPU it has, or had."""
        return self._units[gpu]

    def changes(self, after_us: int, before_us: int, *, curve: bool) -> Iterator[int]:
        """When, between the two, it came and went; with `curve`, also when it may have been more or less busy."""
        marks = (self.from_us, self.until_us, self.started_us if curve else None)
        yield from (us for us in marks if us is not None and after_us < us < before_us)
        if curve and self.started_us is not None:
            began_us, until_us = self.started_us, before_us if self.until_us is None else min(before_us, self.until_us)
            for us in self.curve.cuts(max(0, after_us - began_us), max(0, until_us - began_us)):
                yield began_us + us

    @cached_property
    def _units(self) -> Counter[int]:
        return Counter(grant.gpu for grant in self.grants)


def tenancy_of(pod: Doc, resource: str, seed: int) -> DeviceLease:
    """The pod as it is bound to a node that has that resource; `seed` decides what it does not say of itself."""
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

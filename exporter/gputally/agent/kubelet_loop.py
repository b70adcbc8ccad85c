"""Asking the kubelet who holds what, once every interval."""

import logging
from collections.abc import Mapping
from typing import Final, Protocol

from msgspec.structs import replace

from gputally.agent.agent_settings import AgentSettings
from gputally.devices.kubelet.allocations import allocations
from gputally.devices.kubelet.device_assignments import DeviceAssignment
from gputally.devices.kubelet.offer import Offer
from gputally.devices.kubelet.parts import Parts
from gputally.devices.kubelet.pod_uids import PodUids
from gputally.errors import KubeletRefused, KubeletUnreachable
from gputally.metering.device_accounts import DeviceAccounts
from gputally.model.measured.device import PartAllocations, Reading
from gputally.model.measured.node_health import NodeHealth
from gputally.model.units import US_PER_SECOND
from gputally.process.clock import Clock
from gputally.process.every import every
from gputally.process.once import Once

logger = logging.getLogger(__name__)

LOOK_EVERY: Final = 10
LOOK_SOON: Final = 2
"""Every so many questions who holds what, the kubelet is asked what it offers; sooner while anything is missing."""
SETTLING_US: Final = 3 * US_PER_SECOND
"""For so long after a kubelet came back nobody who is missing is believed gone: it answers before it knows its pods.

Measured with kubelet 1.36.3: its list is empty for some 0.9 s after a restart."""


class Kubelet(Protocol):
    """Who is asked: the kubelet at its socket, or a simulated one. Raises: KubeletUnreachable, KubeletRefused."""

    async def list(self) -> tuple[DeviceAssignment, ...]:
        """Who holds what on this node at this moment."""

    async def allocatable(self) -> Mapping[str, frozenset[str]] | None:
        """The ids of the devices offered, by resource; None if that is not told."""


class Uids(Protocol):
    """Who knows the UIDs of pods, which a kubelet does not tell."""

    def name(self, allocations: PartAllocations) -> PartAllocations:
        """The same with the UIDs, "" for those that cannot be told."""


class KubeletLoop:
    """Tells the books who holds what; a question without an answer tells nothing."""

    def __init__(  # noqa: PLR0913 - all that the books and the kubelet need of each other
        self,
        kubelet: Kubelet,
        books: DeviceAccounts,
        readings: Mapping[str, Reading],
        health: NodeHealth,
        *,
        clock: Clock,
        settings: AgentSettings,
        uids: Uids | None = None,
    ) -> None:
        self._kubelet = kubelet
        self._books = books
        self._readings = readings
        self._known: dict[str, Reading] = {}
        """The last readings of all GPUs, also of those that are lost, which somebody may hold still."""
        self._health = health
        self._clock = clock
        self._interval_s = settings.interval_s
        self._uids = uids or PodUids(settings.pod_logs)
        self._trouble = Once(logger, "kubelet")
        self._turns = 0
        self._offer = Offer()
        self._last = PartAllocations(at_us=0, held=())
        self._settled_us = 0

    async def run(self) -> None:
        """For ever: one question every interval, however long the last one took."""
        await every(self._interval_s, self.step)

    async def step(self) -> None:
        """Ask once. What the kubelet names by numbers is found among the GPUs as last read."""
        self._known.update(self._readings)
        if not self._known:
            return
        try:
            found = await self._ask()
        except KubeletUnreachable as error:
            self._failed("unreachable", error)
        except KubeletRefused as error:
            self._failed("refused", error)
        else:
            self._health.polls["ok"] += 1
            self._health.last_poll_us = found.at_us
            self._trouble.forget()
            self._last = self._uids.name(self._with_missing(found))
            self._books.allocated(self._last)

    async def _ask(self) -> PartAllocations:
        held = await self._kubelet.list()
        at_us = self._clock()
        parts = Parts(self._known.values())
        if at_us >= self._settled_us or not self._offer.replicas:  # before, it may not know its device plugins either
            await self._look_at_offer(parts)
        found = allocations(held, self._offer.replicas, parts, at_us=at_us)
        return replace(found, unhealthy=self._offer.unhealthy)

    async def _look_at_offer(self, parts: Parts) -> None:
        """Now and then, and at once as long as anything is missing. Without an answer the last one holds."""
        self._turns -= 1
        if self._turns > 0:
            return
        try:
            allocatable = await self._kubelet.allocatable()
        except (KubeletUnreachable, KubeletRefused) as error:
            self._trouble.warn(str(error))
            return
        if allocatable is not None:
            self._offer.told(allocatable, parts, held={each.part for each in self._last.held})
        self._turns = LOOK_SOON if self._offer.unhealthy else LOOK_EVERY

    def _with_missing(self, found: PartAllocations) -> PartAllocations:
        """What a kubelet tells that has just come back, with what it does not know yet."""
        if found.at_us >= self._settled_us:
            return found
        known = {(each.part, each.namespace, each.pod, each.container) for each in found.held}
        missing = [
            each for each in self._last.held if (each.part, each.namespace, each.pod, each.container) not in known
        ]
        return replace(found, held=tuple(sorted((*found.held, *missing))))

    def _failed(self, outcome: str, error: KubeletUnreachable | KubeletRefused) -> None:
        self._health.polls[outcome] += 1
        self._trouble.warn(str(error))
        self._turns = 0  # whatever it offered before may have changed
        self._settled_us = self._clock() + SETTLING_US

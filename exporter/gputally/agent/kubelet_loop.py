"""Poll the kubelet for device assignments once per interval."""

import logging
from collections.abc import Mapping
from typing import Final, Protocol

from msgspec.structs import replace

from gputally.agent.agent_settings import AgentSettings
from gputally.devices.kubelet.device_assignments import DeviceAssignment
from gputally.devices.kubelet.parts import Offer, Parts, allocations
from gputally.devices.kubelet.pod_uids import PodUids
from gputally.errors import KubeletRefused, KubeletUnreachable
from gputally.metering.device_accounts import DeviceAccounts
from gputally.model.devices import PartAllocations, Reading
from gputally.model.health import NodeHealth
from gputally.model.units import US_PER_SECOND
from gputally.process.clock import Clock
from gputally.process.command import every
from gputally.process.log import Once

logger = logging.getLogger(__name__)

OFFER_POLLS: Final = 10
OFFER_POLLS_UNHEALTHY: Final = 2
"""Poll the allocatable devices once per this many polls of the assignments; more often while a device is unhealthy."""
RESTART_US: Final = 3 * US_PER_SECOND
"""How long missing assignments are kept after a failed poll: a restarted kubelet responds before it lists its pods.

Measured with kubelet 1.36.3: its list is empty for about 0.9 s after a restart."""


class Kubelet(Protocol):
    """The kubelet to poll, real or simulated. Raises: KubeletUnreachable, KubeletRefused."""

    async def list(self) -> tuple[DeviceAssignment, ...]:
        """The current device assignments of this node."""

    async def allocatable(self) -> Mapping[str, frozenset[str]] | None:
        """IDs of allocatable devices by resource; None if the kubelet does not report them."""


class PodUidLookup(Protocol):
    """Looks up pod UIDs, which the kubelet does not report."""

    def name(self, allocations: PartAllocations) -> PartAllocations:
        """`allocations` with pod UIDs, "" where unknown."""


class KubeletLoop:
    """Updates the accounting with the allocations; a failed poll changes nothing."""

    def __init__(  # noqa: PLR0913 - connects the kubelet, the readings and the accounting
        self,
        kubelet: Kubelet,
        accounts: DeviceAccounts,
        readings: Mapping[str, Reading],
        health: NodeHealth,
        *,
        clock: Clock,
        settings: AgentSettings,
        uids: PodUidLookup | None = None,
    ) -> None:
        self._kubelet = kubelet
        self._accounts = accounts
        self._readings = readings
        self._known: dict[str, Reading] = {}
        """The last reading of every GPU, including lost GPUs, which may still be allocated."""
        self._health = health
        self._clock = clock
        self._interval_s = settings.interval_s
        self._uids = uids or PodUids(settings.pod_logs)
        self._warnings = Once(logger, "kubelet")
        self._polls_to_offer = 0
        self._offer = Offer()
        self._last = PartAllocations(at_us=0, held=())
        self._restarted_until_us = 0

    async def run(self) -> None:
        """Poll every interval until cancelled, however long the last poll took."""
        await every(self._interval_s, self.step)

    async def step(self) -> None:
        """Poll once. Device IDs are looked up in the last GPU readings."""
        self._known.update(self._readings)
        if not self._known:
            return
        try:
            found = await self._poll()
        except KubeletUnreachable as error:
            self._failed("unreachable", error)
        except KubeletRefused as error:
            self._failed("refused", error)
        else:
            self._health.polls["ok"] += 1
            self._health.last_poll_us = found.at_us
            self._warnings.forget()
            self._last = self._uids.name(self._with_missing(found))
            self._accounts.allocated(self._last)

    async def _poll(self) -> PartAllocations:
        held = await self._kubelet.list()
        at_us = self._clock()
        parts = Parts(self._known.values())
        # a restarted kubelet may not know its device plugins yet
        if at_us >= self._restarted_until_us or not self._offer.replicas:
            await self._refresh_offer(parts)
        found = allocations(held, self._offer.replicas, parts, at_us=at_us)
        return replace(found, unhealthy=self._offer.unhealthy)

    async def _refresh_offer(self, parts: Parts) -> None:
        """Poll the allocatable devices if due. If the poll fails, keep the last result."""
        self._polls_to_offer -= 1
        if self._polls_to_offer > 0:
            return
        try:
            allocatable = await self._kubelet.allocatable()
        except (KubeletUnreachable, KubeletRefused) as error:
            self._warnings.warn(str(error))
            return
        if allocatable is not None:
            self._offer.update(allocatable, parts, held={each.part for each in self._last.held})
        self._polls_to_offer = OFFER_POLLS_UNHEALTHY if self._offer.unhealthy else OFFER_POLLS

    def _with_missing(self, found: PartAllocations) -> PartAllocations:
        """Add the last known allocations that are missing after a kubelet restart."""
        if found.at_us >= self._restarted_until_us:
            return found
        known = {(each.part, each.namespace, each.pod, each.container) for each in found.held}
        missing = [
            each for each in self._last.held if (each.part, each.namespace, each.pod, each.container) not in known
        ]
        return replace(found, held=tuple(sorted((*found.held, *missing))))

    def _failed(self, outcome: str, error: KubeletUnreachable | KubeletRefused) -> None:
        self._health.polls[outcome] += 1
        self._warnings.warn(str(error))
        self._polls_to_offer = 0  # the allocatable devices may have changed
        self._restarted_until_us = self._clock() + RESTART_US

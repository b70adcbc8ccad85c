"""Restarts control plane components that exit, as a kubelet does for static pods."""

import asyncio
from collections import Counter

from tests.cluster.component import ComponentFailed
from tests.cluster.control_plane import ControlPlane

SUPERVISED = ("kube-scheduler", "kube-controller-manager", "kwok")
"""The scheduler exits if its cache is inconsistent with watch events after a restart of the API server."""
POLL_S = 0.5


class Supervisor:
    """Keeps the components running; without a scheduler no pod would be bound and nothing accounted."""

    def __init__(self, plane: ControlPlane) -> None:
        self.revived: Counter[str] = Counter()
        """Number of exits of each component."""
        self._plane = plane

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            for name in SUPERVISED:
                if self._has_ended(name):
                    await self._revive(name)
            await asyncio.sleep(POLL_S)

    def _has_ended(self, name: str) -> bool:
        process = self._plane.components[name].process
        return process is None or process.poll() is not None

    async def _revive(self, name: str) -> None:
        """Try one restart; the component may exit again while the API server is down."""
        self.revived[name] += 1
        self._plane.kill(name)
        try:
            await self._plane.start(name)
        except ComponentFailed:
            self._plane.kill(name)

"""Restarts what ends by itself in the control plane, as a kubelet does with its static pods."""

import asyncio
from collections import Counter

from tests.cluster.component import ComponentFailed
from tests.cluster.control_plane import ControlPlane

SUPERVISED = ("kube-scheduler", "kube-controller-manager", "kwok")
"""The scheduler ends itself when a restart of the API server has left its cache at odds with what it is told."""
LOOK_S = 0.5


class Supervisor:
    """Without a scheduler no pod is bound, and a campaign would go on with nothing to account."""

    def __init__(self, plane: ControlPlane) -> None:
        self.revived: Counter[str] = Counter()
        """How often each component had ended by itself."""
        self._plane = plane

    async def run(self) -> None:
        """For ever."""
        while True:
            for name in SUPERVISED:
                if self._has_ended(name):
                    await self._revive(name)
            await asyncio.sleep(LOOK_S)

    def _has_ended(self, name: str) -> bool:
        process = self._plane.components[name].process
        return process is None or process.poll() is not None

    async def _revive(self, name: str) -> None:
        """One try: while the API server is away it may end again."""
        self.revived[name] += 1
        self._plane.kill(name)
        try:
            await self._plane.start(name)
        except ComponentFailed:
            self._plane.kill(name)

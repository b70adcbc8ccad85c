"""Lists nodes and pods beside the watches, where these do not report what is needed to explain waits.

After a restart, the watches go on where they were, and the ledger has only the GPUs of pods. And pods without GPUs were
dropped on a node that gets GPUs late.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Final

from gputally.accounting.waiting.live_room import LiveRoom
from gputally.aggregator.pipeline import Pipeline
from gputally.errors import ApiError
from gputally.kube.api import Api
from gputally.kube.failures import Backoff
from gputally.kube.lists import list_pages
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.nodes import Node
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.observation import ListedSeparately
from gputally.process.clock import Clock
from gputally.process.log import Once
from gputally.shares.request import holds_gpu

logger = logging.getLogger(__name__)

_MOST_NODES: Final = 20
"""Late nodes that are listed one by one; for more, one list of all pods takes less."""
_PRESENT: Final = "status.phase!=Succeeded,status.phase!=Failed"


class RoomLister:
    """Keeps the room complete. Until then, verdicts that need it are not known."""

    def __init__(self, api: Api, pipeline: Pipeline, *, clock: Clock) -> None:
        self._api = api
        self._intake = pipeline.intake
        self._fleet = pipeline.fleet
        self._reconciled = pipeline.accountant.reconciled
        self._clock = clock
        self._backoff = Backoff()
        self._log = Once(logger, "explanation of waits")

    async def run(self) -> None:
        """Forever: list what is missing, as soon as the watches have their lists or have resumed."""
        for kind in (Kind.NODES, Kind.PODS, Kind.NAMESPACES):
            await self._intake.listed[kind].wait()
        while True:
            while not self._live.needs_list:
                await self._reconciled.wait()
            try:
                await self._list()
                self._backoff.reset()
            except ApiError as error:
                self._log.warn(f"cannot list what pods take from nodes: {error}")
                await self._backoff.wait()

    @property
    def _live(self) -> LiveRoom:
        return self._fleet.live_room

    async def _list(self) -> None:
        late = self._live.late
        nodes = () if self._live.lacks_pods or self._live.room.lacks_nodes or len(late) > _MOST_NODES else tuple(late)
        await self._put(ListedSeparately(at_us=self._clock(), nodes=nodes, begins=True))
        async for found in self._pages(nodes):
            await self._put(ListedSeparately(at_us=self._clock(), objects=tuple(found), nodes=nodes))
            await asyncio.sleep(0)
        await self._put(ListedSeparately(at_us=self._clock(), nodes=nodes, ends=True))

    async def _pages(self, nodes: tuple[str, ...]) -> AsyncIterator[list[Object]]:
        if not nodes:
            async for found in list_pages(self._api, "/api/v1/nodes", Node, keep=lambda _: True):
                yield [*found]
        for selector in [f"spec.nodeName={node},{_PRESENT}" for node in nodes] or [_PRESENT]:
            pages = list_pages(self._api, "/api/v1/pods", PlaceablePod, selector=selector, keep=self._matters)
            async for pods in pages:
                yield [*pods]

    def _matters(self, pod: PlaceablePod) -> bool:
        return self._live.matters(pod.spec.node_name) if pod.spec.node_name else holds_gpu(pod, self._fleet.rules)

    async def _put(self, part: ListedSeparately) -> None:
        await self._intake.put([part])

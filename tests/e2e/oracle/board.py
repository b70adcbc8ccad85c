"""All pods of the oracle's states, kept current by one watch."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Self

from tests.cluster.api import Api
from tests.cluster.manifests import Json
from tests.e2e.oracle.state import ORACLE

PODS = "/api/v1/pods"


class Board:
    """The pods by namespace and name."""

    def __init__(self, api: Api) -> None:
        self.pods: dict[tuple[str, str], Json] = {}
        self._api = api
        self._waiting: dict[str, asyncio.Event] = {}

    @classmethod
    @asynccontextmanager
    async def following(cls, api: Api) -> AsyncIterator[Self]:
        """A board that follows the API server."""
        board = cls(api)
        version = (await api.list(PODS, labelSelector=ORACLE))["metadata"]["resourceVersion"]
        task = asyncio.create_task(board.follow(version))
        try:
            yield board
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def follow(self, version: str) -> None:
        while True:
            async with aclosing(self._api.watch(PODS, since=version, labelSelector=ORACLE)) as events:
                async for event in events:
                    metadata = event["object"]["metadata"]
                    version = metadata["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._note(event["type"], event["object"])

    def _note(self, kind: str, pod: Json) -> None:
        namespace = pod["metadata"]["namespace"]
        key = (namespace, pod["metadata"]["name"])
        if kind == "DELETED":
            self.pods.pop(key, None)
        else:
            self.pods[key] = pod
        if event := self._waiting.get(namespace):
            event.set()

    def of(self, namespace: str) -> dict[str, Json]:
        """The pods of a namespace by name."""
        return {name: pod for (owner, name), pod in self.pods.items() if owner == namespace}

    async def until(self, namespace: str, holds: Callable[[dict[str, Json]], bool], *, within: float) -> bool:
        """Wait until `holds` for the pods of the namespace; whether it does within so many seconds."""
        event = self._waiting.setdefault(namespace, asyncio.Event())
        try:
            async with asyncio.timeout(within):
                while not holds(self.of(namespace)):
                    event.clear()
                    await event.wait()
        except TimeoutError:
            return False
        return True

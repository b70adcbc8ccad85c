"""A bare client of the API, for tests."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from gputally_sim.cluster import SimCluster
from gputally_sim.documents import Doc
from tests.unit.sim.world import START_US, furnish

PATIENCE_S = 20.0
"""How long a test waits for what must come; reached only when it fails."""
PODS = "/api/v1/namespaces/team/pods"


class Lines:
    """One open watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def raw(self) -> bytes:
        """The next line, b"" at the end."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._response.content.readline()

    async def next(self) -> Doc:
        found: Doc = json.loads(await self.raw())
        return found

    async def take(self, count: int) -> list[tuple[str, str]]:
        """Type and object name of the next `count` lines."""
        return [await self._brief() for _ in range(count)]

    async def _brief(self) -> tuple[str, str]:
        line = await self.next()
        return line["type"], line["object"]["metadata"].get("name", "")


class Kube:
    """Requests to one cluster."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def call(self, verb: str, path: str, body: object = None, **options: Any) -> tuple[int, Doc]:  # noqa: ANN401 - any JSON
        options.setdefault("headers", {})
        if verb == "PATCH":
            options["headers"] = {"Content-Type": "application/merge-patch+json", **options["headers"]}
        data = None if body is None else json.dumps(body)
        async with self._session.request(verb, path, data=data, **options) as response:
            return response.status, await response.json()

    async def get(self, path: str, **query: str) -> Doc:
        status, document = await self.call("GET", path, params=query)
        assert status == 200, document
        return document

    async def post(self, path: str, body: Doc) -> Doc:
        status, document = await self.call("POST", path, body)
        assert status == 201, document
        return document

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[Lines]:
        async with self._session.get(path, params={"watch": "true", **query}) as response:
            assert response.status == 200, await response.text()
            yield Lines(response)


def names(listing: Doc) -> list[str]:
    return [item["metadata"]["name"] for item in listing["items"]]


@asynccontextmanager
async def serving(*, nodes: int = 2, **settings: Any) -> AsyncIterator[tuple[SimCluster, Kube]]:  # noqa: ANN401 - any JSON
    """A cluster with the objects of `furnish` in it, and a client."""
    async with SimCluster(seed=1, start_us=START_US, **settings) as cluster:
        furnish(cluster.simulation, nodes=nodes)
        async with aiohttp.ClientSession(cluster.url) as session:
            yield cluster, Kube(session)

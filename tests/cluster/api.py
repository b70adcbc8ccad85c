"""A small Kubernetes client for tests: plain JSON, for real and simulated API servers."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Self

import aiohttp

from tests.cluster.manifests import Json, collection
from tests.cluster.objects import Items, named

MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
LONGEST_LINE = 2**23  # of a watch; etcd holds no object above 1.5 MiB


class Refused(Exception):
    """The server responded with an error status."""

    def __init__(self, status: Json) -> None:
        self.code: int = status.get("code", 0)
        self.reason: str = status.get("reason", "")
        super().__init__(f"{self.code} {self.reason}: {status.get('message', '')}")

    @property
    def passing(self) -> bool:
        """Whether a retry can succeed: history expired, too many requests, or a server error."""
        return self.code in {410, 429} or self.code >= 500


class Api:
    """A client of one server as one user. Paths are Kubernetes API paths; an object is a dict."""

    def __init__(self, url: str, token: str, ca_file: Path | None = None) -> None:
        self.url = url
        self.token = token
        self.ca_file = ca_file

    async def __aenter__(self) -> Self:
        self.session = aiohttp.ClientSession(
            self.url,
            connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=self.ca_file), limit=0),
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=aiohttp.ClientTimeout(total=60),
            read_bufsize=LONGEST_LINE,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    async def create(self, manifest: Json) -> Json:
        """Create the object; returns it as stored."""
        return await self.call("POST", collection(manifest), json=manifest)

    async def create_once(self, manifest: Json) -> None:
        """Create the object unless it exists."""
        try:
            await self.create(manifest)
        except Refused as refusal:
            if refusal.reason != "AlreadyExists":
                raise

    async def get(self, path: str) -> Json:
        return await self.call("GET", path)

    async def list(self, path: str, **parameters: str) -> Json:
        """The whole list object; its items lack apiVersion and kind."""
        return await self.call("GET", path, params=parameters)

    async def patch(self, path: str, patch: Json) -> Json:
        """Merge `patch` into the object; for its status, the path ends with `/status`."""
        return await self.call("PATCH", path, json=patch, headers=MERGE_PATCH)

    async def delete(self, path: str, *, grace_seconds: int | None = None, propagation: str = "Background") -> Json:
        """Delete an object or a collection; the default grace period is the object's own."""
        options = {"propagationPolicy": propagation, "gracePeriodSeconds": grace_seconds}
        body = {name: value for name, value in options.items() if value is not None}
        return await self.call("DELETE", path, json=body)

    async def watch(self, path: str, *, since: str, **parameters: str) -> AsyncGenerator[Json]:
        """Events `{"type": ..., "object": ...}` after the version `since`, until the server closes the stream."""
        query = {"watch": "true", "resourceVersion": since, "allowWatchBookmarks": "true"} | parameters
        async with self.session.get(path, params=query, timeout=aiohttp.ClientTimeout()) as response:
            await raise_refusal(response)
            async for line in response.content:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise Refused(event["object"])
                yield event

    async def wait_for(self, path: str, predicate: Callable[[Json | None], bool], *, within: float = 30) -> Json | None:
        """The object at `path` once `predicate` is true for it; None means that the object does not exist."""
        parent, _, name = path.rpartition("/")

        def holds(items: Items) -> bool:
            return predicate(named(items, name))

        return named(await self.wait_for_items(parent, holds, within=within), name)

    async def wait_for_items(self, path: str, predicate: Callable[[Items], bool], *, within: float = 30) -> Items:
        """The items of a collection once `predicate` is true for them; survives a server restart."""
        items: Items = []
        try:
            async with asyncio.timeout(within), aclosing(self.states(path)) as states:
                async for items in states:
                    if predicate(items):
                        return items
        except TimeoutError:
            raise TimeoutError(f"{path} is not as expected after {within} s:\n{digest(items)}") from None
        raise AssertionError("unreachable: states never ends")

    async def states(self, path: str) -> AsyncGenerator[Items]:
        """The items of a collection, now and after each change, without end."""
        while True:
            try:
                async with aclosing(self.states_since_list(path)) as states:
                    async for items in states:
                        yield items
            except aiohttp.ClientError:
                pass
            except Refused as refusal:
                if not refusal.passing:
                    raise
            await asyncio.sleep(0.05)

    async def states_since_list(self, path: str) -> AsyncGenerator[Items]:
        listing = await self.list(path)
        items = {item["metadata"]["uid"]: item for item in listing["items"]}
        yield list(items.values())
        async with aclosing(self.watch(path, since=listing["metadata"]["resourceVersion"])) as events:
            async for event in events:
                apply(event, items)
                yield list(items.values())

    async def call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Json | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        async with self.session.request(method, path, params=params, json=json, headers=headers) as response:
            await raise_refusal(response)
            answer: Json = await response.json()
            return answer


async def raise_refusal(response: aiohttp.ClientResponse) -> None:
    if response.status >= 400:
        text = await response.text()
        with suppress(ValueError):
            raise Refused(json.loads(text))
        raise Refused({"code": response.status, "reason": response.reason, "message": text})


def apply(event: Json, items: dict[str, Json]) -> None:
    """Apply a watch event to `items`, which are keyed by UID."""
    if event["type"] == "DELETED":
        items.pop(event["object"]["metadata"]["uid"], None)
    elif event["type"] != "BOOKMARK":
        items[event["object"]["metadata"]["uid"]] = event["object"]


def digest(items: Items) -> str:
    """A line for each item: its name and its status, cut to 1000 characters."""
    return "\n".join(f"  {item['metadata']['name']}: {json.dumps(item.get('status', {}))[:1000]}" for item in items)

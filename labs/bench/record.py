"""Records the lists and watches of a real API server, for `replay`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial
from pathlib import Path

import aiohttp

from labs.bench import workload
from labs.bench.churn import FIRST, live
from labs.bench.load import Loader, each, say
from labs.bench.server import ApiServer
from tests.cluster.api import Api
from tests.cluster.manifests import path

RESOURCES = {
    "/api/v1/namespaces": "namespaces",
    "/apis/scheduling.k8s.io/v1/priorityclasses": "priorityclasses",
    "/apis/batch/v1/jobs": "jobs",
    "/api/v1/nodes": "nodes",
    "/api/v1/events": "events",
    "/api/v1/namespaces/default/events": "node-events",
    "/api/v1/pods": "pods",
}
"""The recorded paths, each with the NAME of the file `NAME.list` for its streaming list."""
CHURN = "churn"
"""The file with the pod watch events after the list; the last line binds the pending pod named MARKER."""
END_OF_LIST = b'"k8s.io/initial-events-end":"true"'
STREAMING = {
    "watch": "true",
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": "true",
}


async def record(server: ApiServer, loader: Loader, folder: Path, *, lives: int) -> None:
    """Record all lists, then the watch of pods while `lives` pods are created and deleted."""
    marker = await loader.api.create(workload.marked(0, name=workload.MARKER))
    async with Api(server.url, server.token("gputally"), server.ca_file) as reader:
        for resource, name in RESOURCES.items():
            async with aclosing(lines(reader, resource)) as stream:
                (folder / f"{name}.list").write_bytes(b"".join([line async for line in listed(stream)]))
                if name == "pods":
                    writing = asyncio.create_task(_watch_until_marker(stream, folder / CHURN))
                    say(f"  recording {lives} pods that come and go")
                    await each(range(2 * FIRST, 2 * FIRST + lives), partial(live, loader))
                    await loader.bind(marker)
                    await writing
    await loader.api.delete(path(marker), grace_seconds=0)  # later measurements create their own


async def _watch_until_marker(stream: AsyncIterator[bytes], file: Path) -> None:
    """Write the stream up to the event that binds the marker."""
    name = f'"name":"{workload.MARKER}","namespace"'.encode()
    with file.open("wb") as out:
        async for line in stream:
            out.write(line)
            if name in line:
                return


async def lines(api: Api, path: str) -> AsyncGenerator[bytes]:
    """A streaming list and the following watch events, line by line."""
    headers = {"Accept-Encoding": "identity"}
    no_timeout = aiohttp.ClientTimeout()
    async with api.session.get(path, params=STREAMING, headers=headers, timeout=no_timeout) as response:
        async for line in response.content:
            yield line


async def listed(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines up to the bookmark that ends the list."""
    async for line in stream:
        yield line
        if END_OF_LIST in line:
            return

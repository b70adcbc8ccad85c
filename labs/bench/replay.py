"""Replays a recording to clients that list and watch: `python -m labs.bench.replay FOLDER PORT REPEATS`.

Uses HTTP/1.1 with one chunk per event, as the API server does. A watch of pods receives its list at once. It receives
the churn, repeated with new UIDs, after GET /churn, which responds when the last byte has been passed to the kernel.
Times are from the monotonic clock, which all processes of a machine share.
"""

import asyncio
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, urlsplit

from labs.bench.record import CHURN, RESOURCES
from tests.cluster.control_plane import LOOPBACK

BLOCK_BYTES = 1 << 18
UID = b'"uid":"'
OPENING, CLOSING = b'"object":', b"}\n"
KUBE_SYSTEM = (
    b'{"metadata":{},"items":[{"metadata":{"name":"kube-system","uid":"00000000-0000-4000-8000-000000000000"}}]}'
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class Replay:
    """Serves one client, which makes several requests."""

    def __init__(self, folder: Path, *, repeats: int) -> None:
        self._lists = {path: (folder / f"{name}.list").read_bytes() for path, name in RESOURCES.items()}
        self._churn = list(blocks(churn(folder, repeats)))
        self._go = asyncio.Event()
        self._sent = asyncio.Event()
        self._listing_from = self._churn_from = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the requests of one connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self._answer(urlsplit(head.split(b" ", 2)[1].decode()), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _answer(self, url: SplitResult, writer: asyncio.StreamWriter) -> None:
        query = parse_qs(url.query)
        if url.path == "/churn":
            self._go.set()
            await self._sent.wait()
            await document(writer, str(self._churn_from).encode())
        elif url.path == "/listed":
            await document(writer, str(self._listing_from).encode())
        elif query.get("limit") == ["1"] or "kube-system" in url.query:
            await document(writer, KUBE_SYSTEM)
        else:
            await self._serve_list(url.path, query, writer)

    async def _serve_list(self, path: str, query: dict[str, list[str]], writer: asyncio.StreamWriter) -> None:
        pods = RESOURCES[path] == "pods"
        if pods and not self._listing_from:
            self._listing_from = time.monotonic()
        if "watch" not in query:
            await document(writer, as_document(self._lists[path]))
            return
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        if "sendInitialEvents" in query:
            await send(writer, blocks(self._lists[path].splitlines(keepends=True)))
        if pods:
            await self._go.wait()
            self._churn_from = time.monotonic()
            await send(writer, self._churn)
            self._sent.set()
        await asyncio.Event().wait()  # until the client disconnects


def churn(folder: Path, repeats: int) -> Iterator[bytes]:
    """The recorded events, repeated with new UIDs each time; then the marker."""
    *events, marker = (folder / CHURN).read_bytes().splitlines(keepends=True)
    for number in range(repeats):
        yield from (renamed(event, number) for event in events)
    yield marker


def renamed(event: bytes, number: int) -> bytes:
    """The event with the first two digits of its object's UID replaced; that is the first UID in the line."""
    at = event.find(UID) + len(UID)
    return event if b'"BOOKMARK"' in event[:40] else event[:at] + b"%02x" % number + event[at + 2 :]


def blocks(events: Iterable[bytes]) -> Iterator[bytes]:
    """One HTTP chunk per event, joined into large blocks."""
    block = bytearray()
    for event in events:
        block += b"%x\r\n%b\r\n" % (len(event), event)
        if len(block) > BLOCK_BYTES:
            yield bytes(block)
            block.clear()
    yield bytes(block)


def as_document(listing: bytes) -> bytes:
    """A streaming list converted to the equivalent plain list."""
    lines = listing.splitlines(keepends=True)
    *items, bookmark = (line[line.index(OPENING) + len(OPENING) : -len(CLOSING)] for line in lines)
    version = bookmark.partition(b'"resourceVersion":"')[2].partition(b'"')[0]
    return b'{"metadata":{"resourceVersion":"%b"},"items":[%b]}' % (version, b",".join(items))


async def send(writer: asyncio.StreamWriter, blocks: Iterable[bytes]) -> None:
    """Write the blocks as fast as the client reads."""
    for block in blocks:
        writer.write(block)
        await writer.drain()


async def document(writer: asyncio.StreamWriter, body: bytes) -> None:
    writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()


async def main() -> None:
    """Serve until killed."""
    replay = Replay(Path(sys.argv[1]), repeats=int(sys.argv[3]))
    server = await asyncio.start_server(replay.serve, LOOPBACK, int(sys.argv[2]))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

"""List and watch one resource forever.

Three generators: `run_reflector` runs forever, `listing` is one list, `watch` receives the changes since then, until
the response ends.

A list is requested as a whole and parsed while it arrives, which is fastest: a stream of events (`sendInitialEvents`)
or pages take nearly twice as long. Lines are split here: aiohttp's line reader rejects lines above its buffer limit
(`Chunk too big`), and objects may be larger.
"""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager

from msgspec import Struct

from gputally.errors import ApiError
from gputally.kube.api import Api
from gputally.kube.failures import Backoff, Failure, RequestFailed
from gputally.kube.lists import ListItems
from gputally.kube.reflector import Reflector
from gputally.kube.watched import Resource
from gputally.model.health import WatchHealth
from gputally.model.kube.meta import Meta
from gputally.model.observation import Checkpoint, Observation


class Lines:
    """Joins lines across chunks: in linear time for lines of any length, safe for multi-byte characters."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, chunk: bytes) -> list[memoryview]:
        """The lines that `chunk` completes, without line ends and blank lines.

        They are views into the chunk: copies would take five times as long.
        """
        view, lines, start = memoryview(chunk), list[memoryview](), 0
        while (end := chunk.find(b"\n", start)) >= 0:
            lines.append(view[start:end])
            start = end + 1
        if lines and self._rest:
            lines[0] = memoryview(b"".join((*self._rest, lines[0])))
            self._rest.clear()
        self._rest.append(chunk[start:])
        return [line for line in lines if line]


class Page(Struct, frozen=True):
    """A part of a list, decoded only for its version."""

    metadata: Meta


Batches = AsyncGenerator[list[Observation], None]
"""The observations of each chunk of bytes, in order; never empty."""


async def run_reflector(
    api: Api,
    resource: Resource,
    *,
    health: WatchHealth,
    clock: Callable[[], int],
    backoff: Backoff,
    resume: Checkpoint | None = None,
) -> Batches:
    """Observe the objects of `resource` forever; times are by `clock` (µs).

    Starts with a list, or at `resume`. Every ApiError is counted in `health`, logged once and retried. While an
    optional resource is unavailable, each failed list yields `Unavailable`.
    """
    reflector = Reflector(resource, health, clock=clock, backoff=backoff, resume=resume)
    while True:
        with api_errors_handled(reflector):
            async with aclosing(watch(api, reflector) if reflector.version else listing(api, reflector)) as batches:
                async for batch in batches:
                    yield batch
        if unavailable := reflector.unavailable():
            yield [unavailable]
        await reflector.rest()


@contextmanager
def api_errors_handled(reflector: Reflector) -> Iterator[None]:
    """Continue after any ApiError; other exceptions are bugs and end the loop."""
    try:
        yield
    except ApiError as error:
        reflector.failed(error)


async def listing(api: Api, reflector: Reflector) -> Batches:
    """All current objects. Each item is decoded separately, so a malformed one affects no others."""
    resource, requested_us, items = reflector.resource, reflector.clock(), ListItems()
    query = api.stream(reflector.path, reflector.list_params(), split=items.feed, idle_seconds=resource.idle_seconds)
    try:
        async with query as chunks:
            yield [reflector.begin_listing(as_of_us=requested_us)]
            async for chunk in chunks:
                if observations := list(reflector.read_items(chunk)):
                    yield observations
        last = items.end()
    except ValueError as error:
        raise RequestFailed(f"{api.server}{reflector.path}: unexpected response: {error}", Failure.SERVER) from error
    yield [*reflector.read_items(last), reflector.listed(items.version)]


async def watch(api: Api, reflector: Reflector) -> Batches:
    """The changes since the reflector's version, until either side closes the response."""
    resource = reflector.resource
    if reflector.is_unconfirmed:
        newest = await api.get_json(reflector.path, reflector.newest_params(), Page)
        reflector.confirm(newest.metadata.resource_version)
    query = api.stream(reflector.path, reflector.watch_params(), split=Lines().feed, idle_seconds=resource.idle_seconds)
    async with query as chunks:
        with connection(reflector):
            async for lines in chunks:
                observations: list[Observation] = []
                try:
                    observations.extend(reflector.read(lines, waited_seconds=chunks.waited_seconds))
                finally:  # observations before an error count
                    if observations:
                        yield observations
            reflector.ended(waited_seconds=chunks.waited_seconds)


@contextmanager
def connection(reflector: Reflector) -> Iterator[None]:
    """Mark `reflector` as connected, until the block ends."""
    reflector.connected()
    try:
        yield
    finally:
        reflector.disconnected()

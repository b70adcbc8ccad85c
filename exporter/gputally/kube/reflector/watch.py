"""List and watch one resource for ever.

Three generators: `run_reflector` runs for ever, `listing` is one list, `watch` the changes since then, until the
response ends.

A list is asked for whole and taken apart as it comes, since that is what servers send fastest: as a stream of events
(`sendInitialEvents`) or in pages it takes nearly twice as long.
"""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager

from msgspec import Struct

from gputally.errors import ApiError
from gputally.kube.api import Api
from gputally.kube.backoff import Backoff
from gputally.kube.failures import Failure, RequestFailed
from gputally.kube.lines import Lines
from gputally.kube.list_items import ListItems
from gputally.kube.reflector.reflector import Reflector, Resource
from gputally.model.health import WatchHealth
from gputally.model.kube import Meta
from gputally.model.observation import Checkpoint, Observation


class Page(Struct, frozen=True):
    """A part of a listing, of which only the version is looked at."""

    metadata: Meta


Batches = AsyncGenerator[list[Observation], None]
"""What was told together, in order, by one chunk of bytes; never empty."""


async def run_reflector(
    api: Api,
    resource: Resource,
    *,
    health: WatchHealth,
    clock: Callable[[], int],
    backoff: Backoff,
    resume: Checkpoint | None = None,
) -> Batches:
    """For ever: what happens to the objects of `resource`, by `clock` (µs).

    Starts with a listing, or at `resume`. Every ApiError is counted in `health`, logged once and outlived. While an
    optional resource cannot be listed, that is told after each try.
    """
    reflector = Reflector(resource, health, clock=clock, backoff=backoff, resume=resume)
    while True:
        with survived(reflector):
            async with aclosing(watch(api, reflector) if reflector.version else listing(api, reflector)) as batches:
                async for batch in batches:
                    yield batch
        if unavailable := reflector.unavailable():
            yield [unavailable]
        await reflector.rest()


@contextmanager
def survived(reflector: Reflector) -> Iterator[None]:
    """The loop goes on after any ApiError; all else is a bug and ends it."""
    try:
        yield
    except ApiError as error:
        reflector.failed(error)


async def listing(api: Api, reflector: Reflector) -> Batches:
    """All objects as they are now. Items come undecoded, so that a bad one spoils nothing else."""
    resource, asked_us, items = reflector.resource, reflector.clock(), ListItems()
    query = api.stream(resource.path, reflector.list_params(), split=items.feed, idle_seconds=resource.idle_seconds)
    try:
        async with query as chunks:
            yield [reflector.begin_listing(as_of_us=asked_us)]
            async for chunk in chunks:
                if told := list(reflector.read_items(chunk)):
                    yield told
        last = items.end()
    except ValueError as error:
        raise RequestFailed(f"{api.server}{resource.path}: unexpected response: {error}", Failure.SERVER) from error
    yield [*reflector.read_items(last), reflector.listed(items.version)]


async def watch(api: Api, reflector: Reflector) -> Batches:
    """The changes since the version the reflector has come to, until either side closes the response."""
    resource = reflector.resource
    if reflector.is_doubtful:
        reflector.confirm(
            (await api.get_json(resource.path, reflector.newest_params(), Page)).metadata.resource_version
        )
    query = api.stream(resource.path, reflector.watch_params(), split=Lines().feed, idle_seconds=resource.idle_seconds)
    async with query as chunks:
        with connection(reflector):
            async for lines in chunks:
                told: list[Observation] = []
                try:
                    told.extend(reflector.read(lines, waited_seconds=chunks.waited_seconds))
                finally:  # what came before an error counts
                    if told:
                        yield told
            reflector.ended(waited_seconds=chunks.waited_seconds)


@contextmanager
def connection(reflector: Reflector) -> Iterator[None]:
    """`reflector` is connected, whatever ends it."""
    reflector.connected()
    try:
        yield
    finally:
        reflector.disconnected()

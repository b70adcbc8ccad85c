"""List and watch one resource for ever.

An endless loop is three small generators: `follow` survives, `watch` is one response, `pages` one listing.
"""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager

from msgspec import Raw, Struct, field

from gputally.errors import ApiError
from gputally.model.health import WatchHealth
from gputally.model.observation import Observation, Resume
from gputally.sources.api import Api
from gputally.sources.backoff import Backoff
from gputally.sources.feed import Feed, Resource

Batches = AsyncGenerator[list[Observation], None]
"""What was told together, in order: by one chunk of bytes, or by one page; never empty."""


class ListMeta(Struct, rename="camel", frozen=True):
    """`continue` names the next page, "" on the last."""

    resource_version: str = ""
    continue_: str = field(default="", name="continue")


class Page(Struct, frozen=True):
    """One page of a listing; its items stay undecoded so that a bad one spoils nothing else."""

    metadata: ListMeta
    items: list[Raw] | None = None


async def follow(
    api: Api,
    resource: Resource,
    *,
    health: WatchHealth,
    clock: Callable[[], int],
    backoff: Backoff,
    resume: Resume | None = None,
) -> Batches:
    """For ever: what happens to the objects of `resource`, by `clock` (µs).

    Starts with a listing, or at `resume`. Every ApiError is counted in `health`, logged once and outlived.
    """
    feed = Feed(resource, health, clock=clock, backoff=backoff, resume=resume)
    while True:
        with survived(feed):
            by_pages = not feed.version and not feed.lists_by_stream
            async with aclosing(pages(api, feed) if by_pages else watch(api, feed)) as batches:
                async for batch in batches:
                    yield batch
        await feed.rest()


@contextmanager
def survived(feed: Feed) -> Iterator[None]:
    """The loop goes on after any ApiError; all else is a bug and ends it."""
    try:
        yield
    except ApiError as error:
        feed.failed(error)


async def watch(api: Api, feed: Feed) -> Batches:
    """One response, until either side closes it: a listing if none is known, then the changes."""
    resource, asked_us = feed.resource, feed.clock()
    async with api.stream(resource.path, feed.watch_params(), idle_seconds=resource.idle_seconds) as chunks:
        with connection(feed):
            if not feed.version:
                yield [feed.begin_listing(as_of_us=asked_us)]
            async for lines in chunks:
                told: list[Observation] = []
                try:
                    told.extend(feed.read(lines, waited_seconds=chunks.waited_seconds))
                finally:  # what came before an error counts
                    if told:
                        yield told
            feed.ended(waited_seconds=chunks.waited_seconds)


@contextmanager
def connection(feed: Feed) -> Iterator[None]:
    """`feed` is connected, whatever ends it."""
    feed.connected()
    try:
        yield
    finally:
        feed.disconnected()


async def pages(api: Api, feed: Feed) -> Batches:
    """One listing by pages, for servers that cannot stream it; memory is bounded by a page."""
    asked_us = feed.clock()
    page = await api.get_json(feed.resource.path, feed.page_params(""), Page)
    yield [feed.begin_listing(as_of_us=asked_us)]
    while True:
        if told := list(feed.read_items(page.items or ())):
            yield told
        if not page.metadata.continue_:
            break
        page = await api.get_json(feed.resource.path, feed.page_params(page.metadata.continue_), Page)
    yield [feed.listed(page.metadata.resource_version)]

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

Observations = AsyncGenerator[Observation, None]


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
) -> Observations:
    """For ever: what happens to the objects of `resource`, by `clock` (µs).

    Starts with a listing, or at `resume`. Every ApiError is counted in `health`, logged once and outlived.
    """
    feed = Feed(resource, health, clock=clock, backoff=backoff, resume=resume)
    while True:
        with survived(feed):
            by_pages = not feed.version and not feed.lists_by_stream
            async with aclosing(pages(api, feed) if by_pages else watch(api, feed)) as observations:
                async for observation in observations:
                    yield observation
        await feed.rest()


@contextmanager
def survived(feed: Feed) -> Iterator[None]:
    """The loop goes on after any ApiError; all else is a bug and ends it."""
    try:
        yield
    except ApiError as error:
        feed.failed(error)


async def watch(api: Api, feed: Feed) -> Observations:
    """One response, until either side closes it: a listing if none is known, then the changes."""
    resource = feed.resource
    async with api.stream(resource.path, feed.watch_params(), idle_seconds=resource.idle_seconds) as batches:
        with connection(feed):
            if not feed.version:
                yield feed.begin_listing()
            async for lines in batches:
                for observation in feed.read(lines):
                    yield observation


@contextmanager
def connection(feed: Feed) -> Iterator[None]:
    """`feed` is connected, whatever ends it."""
    feed.connected()
    try:
        yield
    finally:
        feed.disconnected()


async def pages(api: Api, feed: Feed) -> Observations:
    """One listing by pages, for servers that cannot stream it; memory is bounded by a page."""
    as_of_us = feed.clock()  # the server answers all pages from one moment, not before this one
    page = await api.get_json(feed.resource.path, feed.page_params(""), Page)
    yield feed.begin_listing()
    while True:
        for observation in feed.read_items(page.items or ()):
            yield observation
        if not page.metadata.continue_:
            break
        page = await api.get_json(feed.resource.path, feed.page_params(page.metadata.continue_), Page)
    yield feed.listed(page.metadata.resource_version, as_of_us=as_of_us)

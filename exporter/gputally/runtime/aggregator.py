"""The aggregator: watches in, metrics and ledger out. This file only wires."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

from gputally import __version__
from gputally.accounting.fleet import Fleet
from gputally.config.read import read_files
from gputally.errors import ApiError
from gputally.export.listen import Address
from gputally.export.web import Readiness, Site, serve
from gputally.ledger.sqlite import SqliteLedger
from gputally.model.health import WatchHealth
from gputally.model.kube import Kind, OwnerReference
from gputally.model.observation import Observation
from gputally.runtime.books import Books
from gputally.runtime.clock import Clock
from gputally.runtime.cluster import identify, resources
from gputally.runtime.settings import Settings
from gputally.sources.api import Api
from gputally.sources.backoff import Backoff
from gputally.sources.connect import Choice, connect
from gputally.sources.owners import Owners
from gputally.sources.watch import follow

logger = logging.getLogger(__name__)

Queue = asyncio.Queue[Observation]
_QUEUE_SIZE: Final = 10_000
_BATCH: Final = 500
_FIRST: Final = (Kind.NAMESPACES, Kind.PRIORITY_CLASSES, Kind.NODES)
"""Known before the first pod, so that pods are classified once and right."""


class Running:
    """A running aggregator: its books, and where it answers."""

    def __init__(self, books: Books, queue: Queue, addresses: tuple[Address, ...]) -> None:
        self.books = books
        self.addresses = addresses
        self._queue = queue

    def ready(self) -> Readiness:
        """Ready when every watch has a complete picture and it is accounted."""
        return readiness(self.books, self._queue)


async def aggregate(settings: Settings, clock: Clock, *, started: Callable[[Running], None] | None = None) -> None:
    """Run until cancelled; the first task to fail ends all.

    Raises: ConfigError, ApiError, LedgerError or AddressTaken before anything has started.
    """
    rules, book = read_files(settings.config, settings.prices)
    choice = Choice(kubeconfig=settings.kubeconfig, context=settings.context)
    with SqliteLedger(settings.ledger) as ledger:
        async with connect(choice) as api:
            ledger.bind(await identify(api, rules, patience_s=settings.api_patience_s))
            saved = ledger.saved(now_us=clock())
            healths = {kind: WatchHealth(kind=kind) for kind in Kind}
            fleet = Fleet(rules=rules, book=book, saved=saved)
            books = Books(fleet, ledger, clock=clock, watches=tuple(healths.values()))
            queue = Queue(_QUEUE_SIZE)
            site = _site(books, queue, max_requests=settings.max_requests)
            try:
                async with serve(site, addresses=settings.addresses) as addresses, asyncio.TaskGroup() as tasks:
                    if started:
                        started(Running(books, queue, addresses))
                    logger.info("serving on %s", ", ".join(f"http://{address}/metrics" for address in addresses))
                    tasks.create_task(books.keep_flushed(), name="ledger")
                    tasks.create_task(account(queue, books, api, clock, tasks), name="account")
                    await _watch_all(api, books, queue, healths, clock, tasks)
            finally:
                await books.close()


async def account(queue: Queue, books: Books, api: Api, clock: Clock, tasks: asyncio.TaskGroup) -> None:
    """For ever: apply what the watches bring, in batches, and ask for the owners that jobs are named by."""
    owners, asked = Owners(api, clock=clock), set[str]()
    while True:
        batch = [await queue.get()]
        while len(batch) < _BATCH and not queue.empty():
            batch.append(queue.get_nowait())
        books.take(batch)
        books.health.queued = queue.qsize()
        for uid, (reference, namespace) in tuple(books.fleet.pods.wanted_owners.items()):
            if uid not in asked:
                asked.add(uid)
                tasks.create_task(_ask(owners, reference, namespace, queue, asked), name=f"owner {reference.name}")
        await books.room.wait()


async def _ask(owners: Owners, reference: OwnerReference, namespace: str, queue: Queue, asked: set[str]) -> None:
    """Fetch one owner; without an answer the walk ends at what is known, and the next pod asks again."""
    try:
        await queue.put(await owners.owner(reference, namespace=namespace))
    except ApiError as error:
        logger.warning("owner %s %s/%s: %s", reference.kind, namespace, reference.name, error)
    finally:
        asked.discard(reference.uid)


async def _watch_all(
    api: Api, books: Books, queue: Queue, healths: dict[Kind, WatchHealth], clock: Clock, tasks: asyncio.TaskGroup
) -> None:
    """Start the watches: what classifies pods first, pods and Events once that is known."""
    watched = resources(books.fleet.rules)
    saved = dict(books.fleet.resumes)

    def start(kind: Kind) -> None:
        resume = saved.get(kind) if kind is Kind.PODS else None
        feed = follow(api, watched[kind], health=healths[kind], clock=clock, backoff=Backoff(), resume=resume)
        tasks.create_task(_pump(feed, queue), name=f"watch {kind}")

    for kind in _FIRST:
        start(kind)
    for kind in _FIRST:
        await books.listed[kind].wait()
    for kind in (Kind.EVENTS, Kind.PODS):
        start(kind)


async def _pump(feed: AsyncGenerator[Observation, None], queue: Queue) -> None:
    async with aclosing(feed) as observations:
        async for observation in observations:
            await queue.put(observation)


def readiness(books: Books, queue: Queue) -> Readiness:
    """What is still missing of a complete picture."""
    missing = [f"watch {watch.kind}: no complete listing yet" for watch in books.health.watches if not watch.synced]
    if not queue.empty():
        missing.append(f"accounting: {queue.qsize()} observations behind")
    return Readiness(tuple(missing))


def _site(books: Books, queue: Queue, *, max_requests: int) -> Site:
    return Site(
        title="gputally aggregator",
        about="Accounts who held which GPUs, at which priority tier, for which tenant, at what cost.",
        version=__version__,
        scrape=books.scrape,
        ready=lambda: readiness(books, queue),
        max_requests=max_requests,
    )

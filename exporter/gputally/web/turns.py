"""Turns at what few requests may do at once: clients share them, so that one with many requests delays no other."""

import asyncio
import ipaddress
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from http import HTTPStatus
from typing import Final, TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler

OWN: Final = ""
"""This process itself as client: it waits for its turns like others, but is never refused."""
CLIENT: Final = ContextVar("client", default=OWN)
"""Who sent the current request: a user, or an address if there are no users."""
WAITING: Final = 64
"""Requests of all clients that may wait for the same turns: each holds its connection and a few kB."""
RETRY_AFTER: Final = {"Retry-After": "2"}
"""The headers of each response to a request that may succeed soon."""
_IPV6_NETWORK: Final = 64
"""Bits of an IPv6 address that identify a site: one machine usually has all addresses behind them."""

Now = TypeVar("Now")
Answer = TypeVar("Answer")


class TooBusy(Exception):
    """The request gets no turn; the text says why. `is_own`: because of other requests of the same client."""

    def __init__(self, text: str, *, is_own: bool) -> None:
        super().__init__(text)
        self.status = HTTPStatus.TOO_MANY_REQUESTS if is_own else HTTPStatus.SERVICE_UNAVAILABLE


class Turns:
    """At most `at_once` requests have a turn, `of_client` of them of one client; the others wait.

    When a turn ends, the next one goes to each waiting client in rotation. A client has at most `places` requests that
    have a turn or wait. If `WAITING` requests wait, the client with most of them loses its latest to a new client's.
    Neither limit applies to the process itself, which waits in the same rotation.
    """

    def __init__(self, at_once: int, *, places: int, of_client: int | None = None) -> None:
        self._at_once = at_once
        self._of_client = of_client or at_once
        self._places = places
        self._running: Counter[str] = Counter()
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}
        """The waiting requests by client; the first client is the next in rotation."""

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn of `CLIENT`, and have it while the context is open. Raises: TooBusy, except to `OWN`."""
        client = CLIENT.get()
        await self._acquire(client)
        try:
            yield
        finally:
            self._release(client)

    async def answer(self, read: Callable[[], Now], explain: Callable[[Now], Answer]) -> Answer:
        """What `explain` makes in a thread of what `read` reads here, both when its turn has come.

        Raises: TooBusy, and what both raise.
        """
        async with self.turn():
            return await in_thread(explain, read())

    async def _acquire(self, client: str) -> None:
        self._drop_disconnected()
        if client != OWN and self._running[client] + len(self._lines.get(client, ())) >= self._places:
            text = f"{self._places} requests of this client are in progress or wait, the maximum; try again later"
            raise TooBusy(text, is_own=True)
        if self._is_free_for(client):
            self._running[client] += 1
            return
        if client != OWN:
            self._make_room(client)
        place = asyncio.get_running_loop().create_future()
        self._lines.setdefault(client, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                self._leave(client, place)
            elif not place.exception():  # its turn came at the same moment
                self._release(client)
            raise

    def _drop_disconnected(self) -> None:
        """Remove the places of requests that were cancelled, but have not run since then."""
        kept = {client: deque(each for each in line if not each.done()) for client, line in self._lines.items()}
        self._lines = {client: line for client, line in kept.items() if line}

    def _is_free_for(self, client: str) -> bool:
        return self._running.total() < self._at_once and self._running[client] < self._of_client

    def _make_room(self, client: str) -> None:
        """Raises: TooBusy if as many requests of this client wait as of any other."""
        waiting = {each: len(line) for each, line in self._lines.items() if each != OWN}
        if sum(waiting.values()) < WAITING:
            return
        text = f"{WAITING} requests are waiting, the maximum; try again later"
        busiest = max(waiting, key=waiting.__getitem__)
        if waiting.get(client, 0) + 1 >= waiting[busiest]:
            raise TooBusy(text, is_own=False)
        last = self._lines[busiest][-1]
        self._leave(busiest, last)
        last.set_exception(TooBusy(text, is_own=True))

    def _leave(self, client: str, place: asyncio.Future[None]) -> None:
        line = self._lines.get(client, deque())
        if place in line:
            line.remove(place)
        if not line:
            self._lines.pop(client, None)

    def _release(self, client: str) -> None:
        self._running[client] -= 1
        if not self._running[client]:
            del self._running[client]
        self._drop_disconnected()
        while (following := next(filter(self._is_free_for, self._lines), None)) is not None:
            self._grant(following)

    def _grant(self, client: str) -> None:
        """The turn of the client's oldest request; afterwards it is the last in rotation."""
        line = self._lines.pop(client)
        place = line.popleft()
        if line:
            self._lines[client] = line
        self._running[client] += 1
        place.set_result(None)


async def in_thread(function: Callable[[Now], Answer], argument: Now) -> Answer:
    """What the function returns, from a thread; a task waits for its end however often it is cancelled.

    So its turn covers all work of the thread.
    """
    work = asyncio.ensure_future(asyncio.to_thread(function, argument))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((work,))
        if not work.cancelled():
            work.exception()  # nobody else asks for it
        raise


ANSWERS: Final = web.AppKey("answers", Turns)
"""Turns of all answers of a process that threads make: two at once, so that they delay no scrape and event for long."""


def answer_turns() -> Turns:
    """Turns for `ANSWERS`."""
    return Turns(2, places=16)


@web.middleware
async def busy_rejected(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The handler's response; 429 or 503 if it gets no turn."""
    try:
        return await handler(request)
    except TooBusy as error:
        return try_again(str(error), status=error.status)


def try_again(text: str, *, status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE) -> web.Response:
    """The response to a request that may succeed soon."""
    return web.Response(status=status, text=f"{text}\n", headers=RETRY_AFTER)


def client_address(remote: str | None) -> str:
    """An address as client: all IPv6 addresses of one site are the same client."""
    try:
        address = ipaddress.ip_address((remote or "").partition("%")[0])
    except ValueError:
        return remote or "unknown address"
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_NETWORK), strict=False))

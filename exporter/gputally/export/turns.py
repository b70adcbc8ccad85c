"""Turns at what few requests may do at once: clients share them, so that one with many requests delays no other."""

import asyncio
import ipaddress
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from http import HTTPStatus
from typing import Final, TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler

CLIENT: Final = ContextVar("client", default="")
"""Who sent the current request: a user, or an address if there are no users; "" is this process itself."""
WAITING: Final = 64
"""Requests of all clients that may wait for the same turns: each holds its connection and a few kB."""
_RETRY_SECONDS: Final = "2"
_IPV6_NETWORK: Final = 64
"""Bits of an IPv6 address that identify a site: one machine usually has all addresses behind them."""

Now = TypeVar("Now")
Answer = TypeVar("Answer")


class TooBusy(Exception):
    """The request gets no turn; the text says why. `is_own`: because of other requests of the same client."""

    def __init__(self, text: str, *, is_own: bool) -> None:
        super().__init__(text)
        self.is_own = is_own


class Turns:
    """At most `at_once` requests have a turn, `of_client` of them of one client; the others wait.

    When a turn ends, the next one goes to each waiting client in rotation. A client has at most `places` requests that
    have a turn or wait. If `WAITING` requests wait, the client with most of them loses its latest to a new client's.
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
        """Wait for a turn of `CLIENT`, and have it while the context is open. Raises: TooBusy."""
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
        if self._running[client] + len(self._lines.get(client, ())) >= self._places:
            text = f"{self._places} requests of this client are in progress or wait, the maximum; try again later"
            raise TooBusy(text, is_own=True)
        if self._is_free_for(client):
            self._running[client] += 1
            return
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

    def _is_free_for(self, client: str) -> bool:
        return self._running.total() < self._at_once and self._running[client] < self._of_client

    def _make_room(self, client: str) -> None:
        """Raises: TooBusy if as many requests of this client wait as of any other."""
        if sum(map(len, self._lines.values())) < WAITING:
            return
        text = f"{WAITING} requests are waiting, the maximum; try again later"
        busiest = max(self._lines, key=lambda each: len(self._lines[each]))
        if len(self._lines.get(client, ())) + 1 >= len(self._lines[busiest]):
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
        while (following := next(filter(self._is_free_for, self._lines), None)) is not None:
            self._grant(following)

    def _grant(self, client: str) -> None:
        """The turn of the client's oldest request; afterwards it is the last in rotation."""
        line = self._lines.pop(client)
        place = line.popleft()
        if line:
            self._lines[client] = line
        if not place.cancelled():
            self._running[client] += 1
            place.set_result(None)


async def in_thread(function: Callable[[Now], Answer], argument: Now) -> Answer:
    """What the function returns, from a thread; a cancelled task waits for its end, so that its turn covers it."""
    work = asyncio.ensure_future(asyncio.to_thread(function, argument))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait((work,))
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
        status = HTTPStatus.TOO_MANY_REQUESTS if error.is_own else HTTPStatus.SERVICE_UNAVAILABLE
        return web.Response(status=status, text=f"{error}\n", headers={"Retry-After": _RETRY_SECONDS})


def client_address(remote: str | None) -> str:
    """An address as client: all IPv6 addresses of one site are the same client. "" if it is not known."""
    try:
        address = ipaddress.ip_address((remote or "").partition("%")[0])
    except ValueError:
        return remote or ""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_NETWORK), strict=False))

"""The HTTP side of a process: metrics, health, and a page that says what is where."""

import asyncio
import gzip
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Final

from aiohttp import web
from msgspec import Struct

from gputally.errors import GputallyError
from gputally.export import landing
from gputally.export.listen import Address, bound, listen
from gputally.export.negotiate import gzip_accepted, media

Scrape = Callable[[bool], Awaitable[bytes]]
"""The exposition as of now, in OpenMetrics if the argument says so, else in the text format."""

GRACE_SECONDS: Final = 5.0
"""How long requests under way may still take when the server stops."""
_GZIP_LEVEL: Final = 1
"""A third of the time of level 6, for a sixth more bytes."""
_INLINE_BYTES: Final = 32_768
"""Up to here compressing takes less time than handing over to a thread."""
_HEADERS: Final = {"Server": "gputally", "X-Content-Type-Options": "nosniff"}

logger = logging.getLogger(__name__)


class Readiness(Struct, frozen=True):
    """Ready when nothing is `missing`; else each entry names one part and what it waits for."""

    missing: tuple[str, ...] = ()


class Site(Struct, frozen=True, kw_only=True):
    """What one process serves.

    `ready` is asked at each request and must not block. `routes` are served beside the common ones; `links`
    adds (path, meaning) to the landing page. Beyond `max_requests` simultaneous scrapes the answer is 503.
    """

    title: str
    about: str
    version: str
    scrape: Scrape
    ready: Callable[[], Readiness]
    routes: Sequence[web.AbstractRouteDef] = ()
    links: tuple[tuple[str, str], ...] = ()
    max_requests: int = 40


@asynccontextmanager
async def serve(
    site: Site, *, addresses: Sequence[str], tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[Address, ...]]:
    """Serve `site` while the context is open, by HTTPS with `tls`; yields where, with the real port for port 0.

    Raises: AddressTaken, or ConfigError for an address that cannot be used.
    """
    with ExitStack() as opened:
        listeners = [opened.enter_context(listener) for listener in listen(addresses)]
        runner = web.AppRunner(application(site), access_log=None, shutdown_timeout=GRACE_SECONDS)
        await runner.setup()
        try:
            for listener in listeners:
                await web.SockSite(runner, listener, ssl_context=tls).start()
            yield tuple(map(bound, listeners))
        finally:
            await runner.cleanup()


def application(site: Site) -> web.Application:
    """All routes of `site`; each answers HEAD like GET."""
    metrics = _Metrics(site.scrape, max_requests=site.max_requests)
    app = web.Application()
    app.on_response_prepare.append(_add_headers)
    app.on_cleanup.append(metrics.close)
    app.router.add_get("/", _landing(site))
    app.router.add_get("/metrics", metrics.get)
    app.router.add_get("/healthz", _healthz)
    app.router.add_get("/readyz", _readyz(site.ready))
    app.router.add_routes(site.routes)
    return app


class _Metrics:
    """The scrape endpoint: bounded, and one rendering for requests that come while it is under way.

    A shared answer is as old as that rendering's start: milliseconds, against scrape intervals of seconds.
    """

    def __init__(self, scrape: Scrape, *, max_requests: int) -> None:
        self._scrape = scrape
        self._max_requests = max_requests
        self._requests = 0
        self._under_way: dict[tuple[bool, bool], asyncio.Task[bytes]] = {}

    async def get(self, request: web.Request) -> web.Response:
        if self._requests >= self._max_requests:
            return _plain(f"{self._max_requests} scrapes are under way, the most allowed; try again later", status=503)
        self._requests += 1
        try:
            return await self._answer(request)
        except GputallyError as error:
            logger.error("scrape failed: %s", error)  # noqa: TRY400  # a known state needs no traceback
        except Exception:
            logger.exception("scrape failed")  # a gap in the graphs, but the server lives
        finally:
            self._requests -= 1
        return _plain("the scrape failed; the log says why", status=500)

    async def close(self, _app: web.Application) -> None:
        """Let no rendering outlive the server."""
        for task in self._under_way.values():
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    async def _answer(self, request: web.Request) -> web.Response:
        chosen = media(joined(request, "Accept"))
        zipped = gzip_accepted(joined(request, "Accept-Encoding"))
        body = await self._shared(openmetrics=chosen.openmetrics, zipped=zipped)
        headers = {"Content-Type": chosen.content_type, "Vary": "Accept, Accept-Encoding"}
        if zipped:
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=body, headers=headers)

    async def _shared(self, *, openmetrics: bool, zipped: bool) -> bytes:
        key = (openmetrics, zipped)
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(self._body(openmetrics=openmetrics, zipped=zipped), name="scrape")
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._under_way.pop(key))
        return await asyncio.shield(task)  # who hangs up leaves the others their answer

    async def _body(self, *, openmetrics: bool, zipped: bool) -> bytes:
        body = await self._scrape(openmetrics)
        if not zipped:
            return body
        if len(body) <= _INLINE_BYTES:
            return compressed(body)
        return await asyncio.to_thread(compressed, body)  # zlib releases the interpreter meanwhile


def compressed(body: bytes) -> bytes:
    """The body by gzip, quickly rather than small."""
    return gzip.compress(body, _GZIP_LEVEL, mtime=0)


def joined(request: web.Request, header: str) -> str:
    """A header that may come more than once, as one list."""
    return ",".join(request.headers.getall(header, ()))


async def _healthz(_request: web.Request) -> web.Response:
    """The process runs its loop; whether its sources answer is what /readyz tells."""
    return _plain("ok")


def _readyz(ready: Callable[[], Readiness]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def readyz(_request: web.Request) -> web.StreamResponse:
        missing = ready().missing
        return _plain("\n".join(missing), status=503) if missing else _plain("ok")

    return readyz


def _landing(site: Site) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    page = landing.page(title=site.title, about=site.about, version=site.version, links=site.links)

    async def root(_request: web.Request) -> web.StreamResponse:
        return web.Response(text=page, content_type="text/html", headers=landing.HEADERS)

    return root


async def _add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)


def _plain(text: str, *, status: int = 200) -> web.Response:
    return web.Response(text=f"{text}\n", status=status, headers={"Cache-Control": "no-store"})

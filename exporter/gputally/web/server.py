"""The HTTP server of a process, on the addresses of `--web.listen-address`: metrics, health and a status page."""

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from html import escape
from typing import Final, NamedTuple

from aiohttp import web
from msgspec import Struct

from gputally.errors import AddressTaken, ConfigError, GputallyError
from gputally.exposition.negotiation import media
from gputally.exposition.text_format import filter_by_tenant
from gputally.formatting.html_pages import PAGE_HEADERS, page_start
from gputally.process.addresses import FLAG, Address, parse_all, problem
from gputally.web.access_policy import AccessPolicy
from gputally.web.authentication import TENANTS, Authenticator
from gputally.web.connections import HEADERS, accepting, served
from gputally.web.responses import joined, packed, wants_gzip
from gputally.web.turns import ANSWERS, Turns, answer_turns, busy_rejected

REFRESH_SECONDS: Final = 30
LINKS: Final = (
    ("/metrics", "metrics in the Prometheus format"),
    ("/healthz", "whether the process is alive"),
    ("/readyz", "whether all parts are ready, and which are not"),
)
"""(path, meaning) of the pages that every process serves."""
DOCUMENTATION: Final = ("https://github.com/gputally/gputally/tree/main/docs", "documentation, dashboards and runbooks")


class StatusTable(NamedTuple):
    """A table with plain texts as cells. Columns from the second on are numbers if `numbers` says so."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: bool = False


def status_page(
    *,
    title: str,
    about: str,
    version: str,
    missing: Sequence[str] = (),
    sections: Iterable[StatusTable] = (),
    links: Iterable[tuple[str, str]] = (),
) -> str:
    """The page as HTML; all arguments are plain text. `missing` is what the process waits for, none if it is ready."""
    entries = "\n".join(
        f'<dt><a href="{escape(path)}">{escape(path)}</a></dt><dd>{escape(meaning)}</dd>'
        for path, meaning in (*LINKS, *links, DOCUMENTATION)
    )
    return f"""\
{page_start(title, refresh_s=REFRESH_SECONDS)}\
<p>{escape(about)}</p>
{_state(missing)}
{"".join(map(_table, sections))}<h2>Pages</h2>
<dl>
{entries}
</dl>
</main>
<footer>Version {escape(version)}. This page reloads every {REFRESH_SECONDS} seconds.</footer>
</body>
</html>
"""


def _state(missing: Sequence[str]) -> str:
    if not missing:
        return '<p class="state ready" role="status">Ready</p>'
    items = "".join(f"<li>{escape(each)}</li>" for each in missing)
    return f'<div class="state waiting" role="status"><p>Not ready:</p><ul>{items}</ul></div>'


def _table(section: StatusTable) -> str:
    classes = ["", *[' class="number"' if section.numbers else ""] * (len(section.heads) - 1)]
    heads = "".join(
        f'<th scope="col"{style}>{escape(head)}</th>' for head, style in zip(section.heads, classes, strict=True)
    )
    rows = "".join(f"<tr>{_cells(row, classes)}</tr>\n" for row in section.rows)
    empty = f'<tr><td colspan="{len(section.heads)}">none</td></tr>\n'
    caption = f"<caption>{escape(section.title)}</caption>"
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>\n{rows or empty}</tbody></table>\n"


def _cells(row: Sequence[str], classes: Sequence[str]) -> str:
    first, *others = zip(row, classes, strict=True)
    cells = "".join(f"<td{style}>{escape(cell)}</td>" for cell, style in others)
    return f'<th scope="row">{escape(first[0])}</th>{cells}'


METRICS_PATH: Final = "/metrics"
Scrape = Callable[[bool], Awaitable[bytes]]
"""The exposition as of now, in OpenMetrics if the argument says so, else in the text format."""
Sections = Callable[[frozenset[str] | None], Awaitable[Sequence[StatusTable]]]
"""The tables of the status page, for a user restricted to these tenants, None for all."""

GRACE_SECONDS: Final = 5.0
"""Time for requests in progress to finish when the server stops."""
_INLINE_BYTES: Final = 32_768
"""Up to this size, compressing is faster than handing over to a thread."""

logger = logging.getLogger(__name__)
BACKLOG: Final = 128
_ALL: Final = ("", "::")
_NO_IPV6: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)


class Readiness(Struct, frozen=True):
    """Ready when nothing is `missing`; else each entry names one part and what it waits for."""

    missing: tuple[str, ...] = ()


class Site(Struct, frozen=True, kw_only=True):
    """The pages that one process serves.

    `scrapes` yield the metrics of a path. `ready` is called at each request and must not block. `routes` are served in
    addition to the common ones, `tokens` are the tokens of paths that require their own, `bodies` the maximum bytes of
    a body by path. On the status page, `links` adds (path, meaning) and `sections` its tables. `max_requests` scrapes
    are answered at the same time.
    """

    title: str
    about: str
    version: str
    scrapes: Mapping[str, Scrape]
    ready: Callable[[], Readiness]
    routes: Sequence[web.AbstractRouteDef] = ()
    tokens: Mapping[str, Callable[[], str]] = {}
    bodies: Mapping[str, int] = {}
    links: tuple[tuple[str, str], ...] = ()
    sections: Sections | None = None
    max_requests: int = 40


def query_values(request: web.Request) -> dict[str, list[str]]:
    """All values of each query parameter, in order."""
    return {name: request.query.getall(name) for name in request.query}


@asynccontextmanager
async def serve(
    site: Site, *, addresses: Sequence[str], policy_source: Callable[[], AccessPolicy] = AccessPolicy
) -> AsyncIterator[tuple[Address, ...]]:
    """Serve `site` while the context is open; yields the addresses, with the assigned port for port 0.

    `policy_source` returns the access policy for each connection and request.

    Raises: AddressTaken, or ConfigError for an address that cannot be used.
    """
    with ExitStack() as opened:
        listeners = [opened.enter_context(listener) for listener in listen(addresses)]
        runner = web.AppRunner(
            application(site, policy_source),
            access_log=None,
            shutdown_timeout=GRACE_SECONDS,
            handler_cancellation=True,  # a disconnected client's request is dropped
        )
        await runner.setup()
        assert runner.server is not None
        try:
            async with accepting(runner.server, listeners, policy_source):
                found = tuple(map(bound, listeners))
                logger.info("serving on %s", ", ".join(f"{policy_source().scheme}://{each}/metrics" for each in found))
                yield found
        finally:
            await runner.cleanup()


def application(site: Site, policy_source: Callable[[], AccessPolicy]) -> web.Application:
    """All routes of `site`; each also serves HEAD."""
    metrics = {path: _Metrics(scrape, max_requests=site.max_requests) for path, scrape in site.scrapes.items()}
    authenticator = Authenticator(policy_source, site.tokens, site.bodies)
    app = web.Application(middlewares=[authenticator.middleware, served, busy_rejected])
    app[ANSWERS] = answer_turns()
    app.on_response_prepare.extend((_add_headers, authenticator.add_headers))
    app.on_cleanup.extend((*(each.close for each in metrics.values()), authenticator.close))
    app.router.add_get("/", _status(site))
    for path, each in metrics.items():
        app.router.add_get(path, each.get)
    app.router.add_get("/healthz", _healthz)
    app.router.add_get("/readyz", _readyz(site.ready))
    app.router.add_routes(site.routes)
    return app


class _Variant(NamedTuple):
    """A variant of the response; `tenants` is None for all tenants."""

    openmetrics: bool
    gzipped: bool
    tenants: frozenset[str] | None


class _Metrics:
    """The scrape endpoint: scrapes take turns, and those at the same time share one rendering.

    A shared response shows the state at the start of its rendering: milliseconds ago, with scrape intervals of seconds.
    """

    def __init__(self, scrape: Scrape, *, max_requests: int) -> None:
        self._scrape = scrape
        self._turns = Turns(max_requests, places=max_requests)
        self._running: dict[_Variant, asyncio.Task[bytes]] = {}

    async def get(self, request: web.Request) -> web.Response:
        async with self._turns.turn():
            try:
                return await self._answer(request)
            except GputallyError as error:
                logger.error("scrape failed: %s", error)  # noqa: TRY400  # a known state needs no traceback
            except Exception:
                logger.exception("scrape failed")  # a gap in the graphs, but the server continues
        return _plain("the scrape failed; see the log", status=500)

    async def close(self, _app: web.Application) -> None:
        """Cancel renderings that are still in progress."""
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _answer(self, request: web.Request) -> web.Response:
        chosen = media(joined(request, "Accept"))
        gzipped = wants_gzip(request)
        body = await self._shared(_Variant(chosen.openmetrics, gzipped, TENANTS.get()))
        headers = {"Content-Type": chosen.content_type, "Vary": "Accept, Accept-Encoding"}
        if gzipped:
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=body, headers=headers)

    async def _shared(self, variant: _Variant) -> bytes:
        task = self._running.get(variant)
        if task is None:
            task = asyncio.create_task(self._body(variant), name="scrape")
            self._running[variant] = task
            task.add_done_callback(lambda _: self._running.pop(variant))
        return await asyncio.shield(task)  # a client that disconnects must not cancel it for the others

    async def _body(self, variant: _Variant) -> bytes:
        body = await self._scrape(variant.openmetrics)
        if variant.tenants is not None:
            body = await asyncio.to_thread(filter_by_tenant, body, variant.tenants)
        if not variant.gzipped or len(body) <= _INLINE_BYTES:
            return packed(body, gzipped=variant.gzipped)
        return await asyncio.to_thread(packed, body, gzipped=True)  # zlib releases the GIL


async def _healthz(_request: web.Request) -> web.Response:
    """The event loop runs; /readyz reports whether the data sources respond."""
    return _plain("ok")


def _readyz(ready: Callable[[], Readiness]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def readyz(_request: web.Request) -> web.StreamResponse:
        missing = ready().missing
        return _plain("\n".join(missing), status=503) if missing else _plain("ok")

    return readyz


def _status(site: Site) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def root(request: web.Request) -> web.StreamResponse:
        async with request.app[ANSWERS].turn():
            sections = await site.sections(TENANTS.get()) if site.sections else ()
        page = status_page(
            title=site.title,
            about=site.about,
            version=site.version,
            missing=site.ready().missing,
            sections=sections,
            links=site.links,
        )
        return web.Response(text=page, content_type="text/html", headers=PAGE_HEADERS)

    return root


async def _add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers["Server"] = HEADERS["Server"]  # replaces aiohttp's


def _plain(text: str, *, status: int = 200) -> web.Response:
    return web.Response(text=f"{text}\n", status=status)


def listen(texts: Iterable[str]) -> list[socket.socket]:
    """Listening sockets, one for each address; the caller closes them.

    `:PORT` and `[::]:PORT` accept IPv4 and IPv6 if the machine has both. A host name resolves to its first IPv4
    address, as in Go, or else to its first address.

    Raises: AddressTaken, or ConfigError for an address that cannot be parsed, resolved or bound. No socket stays open.
    """
    with ExitStack() as opened:
        sockets = [opened.enter_context(_open(address)) for address in parse_all(texts)]
        opened.pop_all()
    return sockets


def bound(listener: socket.socket) -> Address:
    """The address of `listener`, with the assigned port for port 0."""
    host, port, *_ = listener.getsockname()
    return Address(host, port)


def _open(address: Address) -> socket.socket:
    try:
        return _all_interfaces(address.port) if address.host in _ALL else _one_interface(address)
    except socket.gaierror as error:
        raise ConfigError([problem(f"{address}: {error.strerror}; use a name or address of this machine")]) from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise AddressTaken(f"{address} is in use by another process; stop it or choose another {FLAG}") from error
        raise ConfigError([problem(f"{address}: {_remedy(error)}")]) from error


def _all_interfaces(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
        except OSError as error:
            if error.errno not in _NO_IPV6:  # compiled in but switched off, as in many containers
                raise
    return socket.create_server(("", port), backlog=BACKLOG)


def _one_interface(address: Address) -> socket.socket:
    found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, target = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return socket.create_server(target, family=family, backlog=BACKLOG)


def _remedy(error: OSError) -> str:
    remedies = {
        errno.EACCES: "permission denied; choose a port of 1024 or above",
        errno.EADDRNOTAVAIL: "not an address of this machine; choose one that is, or :PORT for all",
    }
    return remedies.get(error.errno or 0, error.strerror or str(error))

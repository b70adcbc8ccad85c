"""HTTP requests to one API server: documents and endless streams, with typed errors."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from http import HTTPStatus
from typing import Final, Self, TypeVar

import msgspec
from aiohttp import (
    ClientError,
    ClientPayloadError,
    ClientResponse,
    ClientSession,
    ClientSSLError,
    ClientTimeout,
    SocketTimeoutError,
)
from msgspec import Struct, structs
from yarl import URL

import gputally
from gputally.kube.failures import AnswerTooLarge, Failure, LoginRefused, RequestFailed, error_of
from gputally.kube.server_time import Answer, OnAnswer, monotonic_us
from gputally.model.kube.meta import Status

JSON: Final = "application/json"
CONNECT_SECONDS: Final = 10
NEW_CONNECTION_SECONDS: Final = 5.0
"""Timeout of a request on its own connection."""
ANSWER_SECONDS: Final = 60.0
"""Default timeout of a plain request; the server itself gives up after 60 s."""
MOST_BYTES: Final = 8 << 20
"""Default limit of a plain response: several objects of the largest size that the server stores."""
LOGIN_SECONDS: Final = 30
"""Timeout of an exec plugin."""
BUFFER_BYTES: Final = 1 << 20
_MAX_ERROR_BYTES: Final = 64 << 10
"""Limit of an error response; its Status has about 500 bytes."""

T = TypeVar("T")
Split = Callable[[bytes], Sequence[bytes | memoryview]]
"""Splits a chunk of bytes into the lines or list items that it completes."""


class Access(Struct, frozen=True, kw_only=True):
    """How to reach one API server, and where its credentials come from (`login`, for messages).

    `authorization` returns the current header, "" for none; it may block. `tls` is None for http.
    """

    server: str
    login: str
    authorization: Callable[[], str]
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None


def new_session() -> ClientSession:
    """A session for `Api`, without compression: in a cluster network, decompression costs more than it saves."""
    headers = {"User-Agent": f"gputally/{gputally.__version__}", "Accept-Encoding": "identity"}
    return ClientSession(headers=headers, read_bufsize=BUFFER_BYTES)


class Batches:
    """Iterates over a response: for each chunk of bytes, the parts that it completes, perhaps none."""

    def __init__(self, response: ClientResponse, url: str, split: Split) -> None:
        self.waited_seconds = 0.0
        """How long the reader waited for the last chunk, or for the end; 0 if it was already there."""
        self._content = response.content
        self._is_first = True
        self._split = split
        self._url = url

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[bytes | memoryview]:
        """Raises RequestFailed when the connection breaks or falls silent."""
        with _network_errors(self._url, silence=Failure.IDLE):
            chunk = b"" if self._is_first else await self._available()
            self._is_first = False
            started = time.monotonic()
            self.waited_seconds = 0.0
            if not chunk and not self._content.at_eof():
                chunk = await self._content.readany()
                self.waited_seconds = time.monotonic() - started
        if not chunk:
            raise StopAsyncIteration
        return self._split(chunk)

    async def _available(self) -> bytes:
        """Bytes already received, including the socket's buffer, which the event loop needs two turns to read."""
        for _ in range(2):
            if chunk := self._content.read_nowait():
                return chunk
            await asyncio.sleep(0)
        return self._content.read_nowait()


class Api:
    """The requests of one process to one API server, each with current credentials.

    Errors: LoginRefused (401, also after a retry with reloaded credentials), ApiForbidden (403), VersionExpired (410),
    RequestFailed (no response, 429, 5xx), RequestRefused (any other status).
    """

    def __init__(
        self, session: ClientSession, access: Access, *, reread: Callable[[], Access], on_answer: OnAnswer | None = None
    ) -> None:
        self._session = session
        self._access = access
        self._reread = reread
        self._on_answer = on_answer
        # One thread: the package's token refresh is not thread-safe, and a plugin must not run twice at once.
        self._login = ThreadPoolExecutor(max_workers=1, thread_name_prefix="login")

    @property
    def server(self) -> str:
        """The server's URL."""
        return self._access.server

    async def get_json(
        self,
        path: str,
        params: Mapping[str, str],
        shape: type[T],
        *,
        accept: str = JSON,
        most_bytes: int = MOST_BYTES,
        deadline_s: float = ANSWER_SECONDS,
    ) -> T:
        """GET `path`, unmodified, and decode the response as `shape`.

        Raises also: AnswerTooLarge; RequestFailed if decoding fails or the response is incomplete after `deadline_s`.
        """
        timeouts = ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=deadline_s)
        url = self.server + path
        async with _deadline(url, deadline_s), self._get(path, params, accept, timeouts) as response:
            with _network_errors(url):
                body = await _read(response, most_bytes)
        if len(body) > most_bytes:
            raise AnswerTooLarge(f"{url}: the response is larger than {most_bytes >> 10} KiB", Failure.SERVER)
        try:
            return msgspec.json.decode(body, type=shape)
        except (ValueError, RecursionError) as error:
            raise RequestFailed(f"{url}: unexpected response: {error}", Failure.SERVER) from error

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], *, split: Split, idle_seconds: float
    ) -> AsyncIterator[Batches]:
        """Stream a long or endless response in parts; it fails as idle after `idle_seconds` without data."""
        timeouts = ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=idle_seconds)
        async with self._get(path, params, JSON, timeouts) as response:
            yield Batches(response, self.server + path, split)

    async def request_on_new_connection(self, path: str, params: Mapping[str, str]) -> None:
        """Send a request on a new connection, only for `on_answer`: a load balancer may choose another server."""
        timeouts = ClientTimeout(total=NEW_CONNECTION_SECONDS)
        async with new_session() as session, self._get(path, params, JSON, timeouts, own_session=session):
            pass

    @asynccontextmanager
    async def _get(
        self,
        path: str,
        params: Mapping[str, str],
        accept: str,
        timeouts: ClientTimeout,
        *,
        own_session: ClientSession | None = None,
    ) -> AsyncIterator[ClientResponse]:
        session = own_session or self._session
        send = partial(self._send, session, path, params=params, accept=accept, timeouts=timeouts)
        asked_us = monotonic_us()
        with _network_errors(self.server + path):
            access = self._access
            response = await send(access)
            if response.status == HTTPStatus.UNAUTHORIZED:
                response.close()
                await self._reload(access)
                response = await send(self._access)
        async with response:
            if response.status != HTTPStatus.OK:
                await self._raise_error(response, path)
            if self._on_answer:  # errors may come from a proxy with another clock
                self._on_answer(Answer(response.headers.get("Date", ""), asked_us, monotonic_us(), bool(own_session)))
            yield response

    async def _send(
        self,
        session: ClientSession,
        path: str,
        access: Access,
        *,
        params: Mapping[str, str],
        accept: str,
        timeouts: ClientTimeout,
    ) -> ClientResponse:
        try:
            return await session.get(
                _url(access.server, path),
                params=params,
                headers={"Accept": accept} | await self._authorization(access),
                ssl=access.tls or True,
                server_hostname=access.server_name,
                proxy=access.proxy,
                timeout=timeouts,
                allow_redirects=False,  # an API server never redirects, and a token must not follow
            )
        except ClientSSLError:
            await self._reload(access)  # the CA file may have been replaced; the next request uses it
            raise

    async def _authorization(self, access: Access) -> dict[str, str]:
        header = await self._in_login_thread(access.login, access.authorization)
        return {"Authorization": header} if header else {}

    async def _reload(self, stale: Access) -> None:
        """Reload the settings, unless another request has done so since `stale`."""

        def reread() -> None:
            if self._access is stale:
                self._access = self._reread()

        await self._in_login_thread(stale.login, reread)

    async def _in_login_thread(self, login: str, call: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                return await asyncio.get_running_loop().run_in_executor(self._login, call)
        except Exception as error:  # plugins and the package's hook may raise anything
            raise RequestFailed(f"{login}: {str(error) or repr(error)}", Failure.UNREACHABLE) from error

    async def _raise_error(self, response: ClientResponse, path: str) -> None:
        url = self.server + path
        async with _deadline(url, ANSWER_SECONDS):
            with _network_errors(url):
                status = _status(response.status, await _read(response, _MAX_ERROR_BYTES))
        pause = response.headers.get("Retry-After", "")
        error = error_of(status, self.server, path, retry_after_seconds=float(pause) if pause.isdigit() else 0.0)
        if status.code == HTTPStatus.UNAUTHORIZED:
            error = LoginRefused(f"{error}; renew the credentials in {self._access.login}")
        raise error


def _url(server: str, path: str) -> URL:
    """`path` is sent unmodified: dots are not resolved, nothing is quoted or unquoted."""
    base = URL(server)
    return base.with_path(base.raw_path.rstrip("/") + path, encoded=True)


async def _read(response: ClientResponse, most_bytes: int) -> bytes:
    """The body. If it exceeds `most_bytes`, returns little more than these and closes the connection."""
    body = bytearray()
    while len(body) <= most_bytes and (chunk := await response.content.readany()):
        body += chunk
    if not response.content.at_eof():
        response.close()
    return bytes(body)


@asynccontextmanager
async def _deadline(url: str, seconds: float) -> AsyncIterator[None]:
    """Raise RequestFailed after `seconds`, even if data is still arriving."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise RequestFailed(f"{url}: no complete response within {seconds:g} s", Failure.SERVER) from None


def _status(code: int, body: bytes) -> Status:
    """The Status of an error response; a proxy's response may have another format."""
    try:
        return structs.replace(msgspec.json.decode(body, type=Status), code=code)
    except ValueError:
        return Status(code=code, message=body[:200].decode(errors="replace").strip() or None)


@contextmanager
def _network_errors(url: str, *, silence: Failure = Failure.UNREACHABLE) -> Iterator[None]:
    """Convert network errors to RequestFailed with URL and reason; a connection without data counts as `silence`."""
    try:
        yield
    except SocketTimeoutError as error:
        raise RequestFailed(f"{url}: no data received for too long: {error}", silence) from error
    except ClientPayloadError as error:
        raise RequestFailed(f"{url}: the connection broke during the response", Failure.UNREACHABLE) from error
    except (ClientError, OSError) as error:  # TimeoutError is an OSError
        raise RequestFailed(f"{url}: {str(error) or type(error).__name__}", Failure.UNREACHABLE) from error

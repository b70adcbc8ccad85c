"""One API server over HTTP: documents and endless streams of lines, with errors a caller can act on."""

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
from gputally.kube.answer import Answer, Answered, monotonic_us
from gputally.kube.failures import AnswerTooLarge, Failure, LoginRefused, RequestFailed, error_of
from gputally.model.kube import Status

JSON: Final = "application/json"
CONNECT_SECONDS: Final = 10
APART_SECONDS: Final = 5.0
"""How long an answer may take that comes on a connection of its own."""
ANSWER_SECONDS: Final = 60.0
"""How long a plain request may take, if nothing else is said; the server itself gives up after 60 s."""
MOST_BYTES: Final = 8 << 20
"""Of a plain answer, if nothing else is said: several objects of the largest size that the server stores."""
LOGIN_SECONDS: Final = 30
"""How long an exec plugin may take."""
BUFFER_BYTES: Final = 1 << 20
_MOST_REFUSAL_BYTES: Final = 64 << 10
"""What is read of a refusal; its Status has some 500."""

T = TypeVar("T")


class Access(Struct, frozen=True, kw_only=True):
    """How to reach one API server, and where its credentials come from (`login`, for messages).

    `authorization` gives the header of this moment, "" for none; it may block. `tls` is None for http.
    """

    server: str
    login: str
    authorization: Callable[[], str]
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None


def new_session() -> ClientSession:
    """A session for `Api`. Without compression: server and client sit in one network, and inflating costs more."""
    headers = {"User-Agent": f"gputally/{gputally.__version__}", "Accept-Encoding": "identity"}
    return ClientSession(headers=headers, read_bufsize=BUFFER_BYTES)


Split = Callable[[bytes], Sequence[bytes | memoryview]]
"""What a chunk of bytes completes: lines, or the items of a list."""


class Batches:
    """The parts of a response as they come: per chunk of bytes those that it completes, perhaps none."""

    def __init__(self, response: ClientResponse, url: str, split: Split) -> None:
        self.waited_seconds = 0.0
        """How long the last chunk, or the end, had to be waited for; 0 when it had come before it was asked for."""
        self._content = response.content
        self._nothing_came_before = True
        self._split = split
        self._url = url

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[bytes | memoryview]:
        """Raises RequestFailed when the connection breaks or falls silent."""
        with _reached(self._url, silence=Failure.IDLE):
            chunk = b"" if self._nothing_came_before else await self._lying_ready()
            self._nothing_came_before = False
            asked = time.monotonic()
            self.waited_seconds = 0.0
            if not chunk and not self._content.at_eof():
                chunk = await self._content.readany()
                self.waited_seconds = time.monotonic() - asked
        if not chunk:
            raise StopAsyncIteration
        return self._split(chunk)

    async def _lying_ready(self) -> bytes:
        """What has come, also what lies in the socket: the event loop sees it in one turn and reads it in the next."""
        for _ in range(2):
            if chunk := self._content.read_nowait():
                return chunk
            await asyncio.sleep(0)
        return self._content.read_nowait()


class Api:
    """The requests of one process to one API server, each with the credentials of its moment.

    Errors: LoginRefused (401 after a second try with credentials read anew), ApiForbidden (403), VersionExpired (410),
    RequestFailed (no answer, 429, 5xx), RequestRefused (any other status).
    """

    def __init__(
        self, session: ClientSession, access: Access, *, reread: Callable[[], Access], answered: Answered | None = None
    ) -> None:
        self._session = session
        self._access = access
        self._reread = reread
        self._answered = answered
        # One thread: the package's renewal is not thread-safe, and a plugin must not run twice at once.
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
        """The document at `path`, which is sent as it is, decoded as `shape`; one that cannot be is a RequestFailed.

        Raises also: AnswerTooLarge; RequestFailed when the whole answer has not come after `deadline_s`.
        """
        patience = ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=deadline_s)
        url = self.server + path
        async with _by_deadline(url, deadline_s), self._get(path, params, accept, patience) as response:
            with _reached(url):
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
        """A long or endless response in parts; without a byte for `idle_seconds` it fails as idle."""
        patience = ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=idle_seconds)
        async with self._get(path, params, JSON, patience) as response:
            yield Batches(response, self.server + path, split)

    async def ask_apart(self, path: str, params: Mapping[str, str]) -> None:
        """Ask on a new connection, which behind a load balancer may lead to another server, only to be `answered`."""
        patience = ClientTimeout(total=APART_SECONDS)
        async with new_session() as session, self._get(path, params, JSON, patience, apart=session):
            pass

    @asynccontextmanager
    async def _get(
        self,
        path: str,
        params: Mapping[str, str],
        accept: str,
        patience: ClientTimeout,
        *,
        apart: ClientSession | None = None,
    ) -> AsyncIterator[ClientResponse]:
        session = apart or self._session
        send = partial(self._send, session, path, params=params, accept=accept, patience=patience)
        asked_us = monotonic_us()
        with _reached(self.server + path):
            access = self._access
            response = await send(access)
            if response.status == HTTPStatus.UNAUTHORIZED:
                response.close()
                await self._renew(access)
                response = await send(self._access)
        async with response:
            if response.status != HTTPStatus.OK:
                await self._refuse(response, path)
            if self._answered:  # refusals may come from a proxy with a clock of its own
                self._answered(Answer(response.headers.get("Date", ""), asked_us, monotonic_us(), is_apart=bool(apart)))
            yield response

    async def _send(
        self,
        session: ClientSession,
        path: str,
        access: Access,
        *,
        params: Mapping[str, str],
        accept: str,
        patience: ClientTimeout,
    ) -> ClientResponse:
        try:
            return await session.get(
                _url(access.server, path),
                params=params,
                headers={"Accept": accept} | await self._authorization(access),
                ssl=access.tls or True,
                server_hostname=access.server_name,
                proxy=access.proxy,
                timeout=patience,
                allow_redirects=False,  # an API server never redirects, and a token must not follow
            )
        except ClientSSLError:
            await self._renew(access)  # the authority's file may have been replaced; the next try uses it
            raise

    async def _authorization(self, access: Access) -> dict[str, str]:
        header = await self._in_login_thread(access.login, access.authorization)
        return {"Authorization": header} if header else {}

    async def _renew(self, refused: Access) -> None:
        """Read the settings anew, unless another request did so since it used `refused`."""

        def reread() -> None:
            if self._access is refused:
                self._access = self._reread()

        await self._in_login_thread(refused.login, reread)

    async def _in_login_thread(self, login: str, call: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                return await asyncio.get_running_loop().run_in_executor(self._login, call)
        except Exception as error:  # whatever a plugin or the package's hook makes of it
            raise RequestFailed(f"{login}: {str(error) or repr(error)}", Failure.UNREACHABLE) from error

    async def _refuse(self, response: ClientResponse, path: str) -> None:
        url = self.server + path
        async with _by_deadline(url, ANSWER_SECONDS):
            with _reached(url):
                status = _status(response.status, await _read(response, _MOST_REFUSAL_BYTES))
        pause = response.headers.get("Retry-After", "")
        error = error_of(status, self.server, path, retry_after_seconds=float(pause) if pause.isdigit() else 0.0)
        if status.code == HTTPStatus.UNAUTHORIZED:
            error = LoginRefused(f"{error}; renew the credentials in {self._access.login}")
        raise error


def _url(server: str, path: str) -> URL:
    """`path` reaches the server as it is written: no dots are resolved, and nothing is quoted or unquoted."""
    base = URL(server)
    return base.with_path(base.raw_path.rstrip("/") + path, encoded=True)


async def _read(response: ClientResponse, most_bytes: int) -> bytes:
    """The body; of one that is larger than `most_bytes` not much more than these, and its connection is closed."""
    body = bytearray()
    while len(body) <= most_bytes and (chunk := await response.content.readany()):
        body += chunk
    if not response.content.at_eof():
        response.close()
    return bytes(body)


@asynccontextmanager
async def _by_deadline(url: str, seconds: float) -> AsyncIterator[None]:
    """What takes longer is a RequestFailed, however many bytes come meanwhile."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise RequestFailed(f"{url}: no complete response within {seconds:g} s", Failure.SERVER) from None


def _status(code: int, body: bytes) -> Status:
    """The refusal's Status; what stands between us and the server may answer with something else."""
    try:
        return structs.replace(msgspec.json.decode(body, type=Status), code=code)
    except ValueError:
        return Status(code=code, message=body[:200].decode(errors="replace").strip() or None)


@contextmanager
def _reached(url: str, *, silence: Failure = Failure.UNREACHABLE) -> Iterator[None]:
    """Errors of the network as RequestFailed with URL and reason; a silent connection counts as `silence`."""
    try:
        yield
    except SocketTimeoutError as error:
        raise RequestFailed(f"{url}: no data received for too long: {error}", silence) from error
    except ClientPayloadError as error:
        raise RequestFailed(f"{url}: the connection broke during the response", Failure.UNREACHABLE) from error
    except (ClientError, OSError) as error:  # TimeoutError is an OSError
        raise RequestFailed(f"{url}: {str(error) or type(error).__name__}", Failure.UNREACHABLE) from error

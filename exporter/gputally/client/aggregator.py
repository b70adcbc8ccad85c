"""Requests to an aggregator, with its answers decoded and checked."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

import msgspec
from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout
from yarl import URL

from gputally.client.access import Credentials, Service, forwarded
from gputally.errors import AggregatorRefused, AggregatorUnreachable, NotFound
from gputally.model.api.allocations import VERSION, AllocationsDocument
from gputally.model.api.paths import ALLOCATIONS_PATH
from gputally.model.api.why import NOT_FOUND_HEADER
from gputally.model.printable import printable

T = TypeVar("T")
_TIMEOUT: Final = ClientTimeout(total=10)
_MOST_TEXT: Final = 400
_REMEDIES: Final = {
    HTTPStatus.UNAUTHORIZED: "it requires credentials; use --token-file, or --user with --password-file",
    HTTPStatus.FORBIDDEN: "this user or certificate may not read it; see docs/web.md",
    HTTPStatus.NOT_FOUND: "this is no aggregator of gputally, or an older one; check --url",
}
_INVALID: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


class Versioned(Protocol):
    """A document of the API."""

    @property
    def version(self) -> int:
        """The version, which is raised when a field is removed or changes its meaning."""


V = TypeVar("V", bound=Versioned)


def decoded(body: bytes, kind: type[T]) -> T:
    """The document. Raises: AggregatorUnreachable for an answer of another program."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise AggregatorUnreachable(f"not an answer of gputally: {error}; check --url") from None


def of_version(body: bytes, kind: type[V], version: int) -> V:
    """The document. Raises: AggregatorUnreachable, also for one of another version."""
    document = decoded(body, kind)
    if document.version != version:
        text = f"the aggregator answers in version {document.version}; use gputally of the aggregator's version"
        raise AggregatorUnreachable(text)
    return document


class InvalidQuestion(AggregatorRefused):
    """The request is not valid, or too large: `answer` says what to change."""

    def __init__(self, url: str, status: int, answer: str) -> None:
        super().__init__(f"{url}: HTTP {status}: {answer or 'the request is not valid'}")
        self.answer = answer


class AggregatorClient:
    """Requests from one aggregator over one session."""

    def __init__(self, session: ClientSession, url: str, credentials: Credentials) -> None:
        self._session = session
        self._url = url.rstrip("/")
        self._headers = credentials.headers()
        self._tls = credentials.tls()

    async def read(self) -> bytes:
        """The document as JSON. Raises: AggregatorUnreachable."""
        return await self.get(ALLOCATIONS_PATH)

    async def get(self, path: str, *, timeout: ClientTimeout = _TIMEOUT) -> bytes:  # noqa: ASYNC109 - of aiohttp
        """The response to a path with its query. Raises: AggregatorUnreachable, InvalidQuestion, NotFound."""
        return await self._request("GET", path, timeout=timeout)

    async def post(self, path: str, body: bytes) -> bytes:
        """The response to a JSON document. Raises: as `get`."""
        return await self._request("POST", path, data=body, headers={"Content-Type": "application/json"})

    async def _request(
        self,
        method: str,
        path: str,
        *,
        data: bytes | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
        timeout: ClientTimeout = _TIMEOUT,  # noqa: ASYNC109 - of aiohttp
    ) -> bytes:
        url = self._url + path
        sent = {**self._headers, **headers}
        encoded = URL(url, encoded=True)
        request = self._session.request(method, encoded, data=data, headers=sent, ssl=self._tls, timeout=timeout)
        try:
            async with request as response:
                return await _body(response, url)
        except (ClientError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            text = f"{url}: {reason}; check that the aggregator runs, and --url or the port-forward"
            raise AggregatorUnreachable(text) from None

    async def allocations(self) -> AllocationsDocument:
        """The document. Raises: AggregatorUnreachable, also for one of another version."""
        return of_version(await self.read(), AllocationsDocument, VERSION)


@asynccontextmanager
async def connected(url: str, service: Service, credentials: Credentials) -> AsyncIterator[AggregatorClient]:
    """A client of the aggregator at `url`; without one, of the `service`, through kubectl.

    Raises: AggregatorUnreachable, ConfigError.
    """
    async with ClientSession() as session:
        if url:
            yield AggregatorClient(session, url, credentials)
            return
        async with forwarded(service) as port:
            yield AggregatorClient(session, f"http://127.0.0.1:{port}", credentials)


async def _body(response: ClientResponse, url: str) -> bytes:
    if response.status != HTTPStatus.OK:
        text = printable((await response.text(errors="replace"))[:_MOST_TEXT].strip())
        if response.status == HTTPStatus.NOT_FOUND and response.headers.get(NOT_FOUND_HEADER):
            raise NotFound(text)
        if response.status in _INVALID:
            raise InvalidQuestion(url, response.status, text)
        remedy = _REMEDIES.get(HTTPStatus(response.status), text or "see the aggregator's log")
        kind = AggregatorRefused if response.status < HTTPStatus.INTERNAL_SERVER_ERROR else AggregatorUnreachable
        raise kind(f"{url}: HTTP {response.status}: {remedy}")
    return await response.read()

"""Requests the allocations from an aggregator."""

from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout
from yarl import URL

from gputally.errors import AggregatorRefused, AggregatorUnreachable
from gputally.model.allocations_document import PATH, VERSION, AllocationsDocument
from gputally.top.authorization import Credentials

_TIMEOUT: Final = ClientTimeout(total=10)
_REMEDIES: Final = {
    HTTPStatus.UNAUTHORIZED: "it requires credentials; use --token-file, or --user with --password-file",
    HTTPStatus.FORBIDDEN: "this user or certificate may not read it; see docs/web.md",
    HTTPStatus.NOT_FOUND: "this is no aggregator of gputally, or an older one; check --url",
}


class AggregatorClient:
    """Requests from one aggregator over one session."""

    def __init__(self, session: ClientSession, url: str, credentials: Credentials) -> None:
        self._session = session
        self._url = url.rstrip("/")
        self._headers = credentials.headers()
        self._tls = credentials.tls()
        self._decoder = msgspec.json.Decoder(AllocationsDocument)

    async def read(self) -> bytes:
        """The document as JSON. Raises: AggregatorUnreachable."""
        return await self.get(PATH)

    async def get(self, path: str, *, timeout: ClientTimeout = _TIMEOUT) -> bytes:  # noqa: ASYNC109 - of aiohttp
        """The response to a path with its query. Raises: AggregatorUnreachable, AggregatorRefused."""
        url = self._url + path
        request = self._session.get(URL(url, encoded=True), headers=self._headers, ssl=self._tls, timeout=timeout)
        try:
            async with request as response:
                return await _body(response, url)
        except (ClientError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            text = f"{url}: {reason}; check that the aggregator runs, and --url or the port-forward"
            raise AggregatorUnreachable(text) from None

    async def allocations(self) -> AllocationsDocument:
        """The document. Raises: AggregatorUnreachable, also for one of another version."""
        body = await self.read()
        try:
            document = self._decoder.decode(body)
        except msgspec.MsgspecError as error:
            raise AggregatorUnreachable(f"{self._url}{PATH}: not an answer of gputally: {error}; check --url") from None
        if document.version != VERSION:
            text = f"{self._url}: version {document.version} of the API; use gputally of the aggregator's version"
            raise AggregatorUnreachable(text)
        return document


async def _body(response: ClientResponse, url: str) -> bytes:
    if response.status != HTTPStatus.OK:
        text = (await response.text())[:200].strip()
        remedy = _REMEDIES.get(HTTPStatus(response.status), text or "see the aggregator's log")
        kind = AggregatorRefused if response.status < HTTPStatus.INTERNAL_SERVER_ERROR else AggregatorUnreachable
        raise kind(f"{url}: HTTP {response.status}: {remedy}")
    return await response.read()

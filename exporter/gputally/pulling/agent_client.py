"""Request the usage report of an agent; failures are classified by outcome."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, ServerTimeoutError, TCPConnector

import gputally
from gputally.errors import GputallyError
from gputally.model.usage import VERSION, PullOutcome, UsageReport
from gputally.pulling.agent_credentials import tls_contexts, token_file
from gputally.pulling.agent_options import AgentOptions, Target
from gputally.pulling.plausible import implausible

DEADLINE_SECONDS: Final = 5.0
MAX_BYTES: Final = 16 << 20
"""About a hundred times the report of a busy node."""
CONNECT_SECONDS: Final = 2.0
MAX_CONNECTIONS: Final = 256
"""Limit for concurrent requests, reached only if hundreds of agents do not respond."""
_PATH: Final = "/v1/usage"
_MIG: Final = "MIG-"
"""Prefix of MIG device UUIDs; the MIG basis affects only their weights."""
_AUTH_FAILURES: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class PullFailed(GputallyError):
    """The pull failed; retry in the next interval."""

    def __init__(self, outcome: PullOutcome, text: str) -> None:
        super().__init__(text)
        self.outcome = outcome


class AgentClient:
    """Sends requests to all agents, over one session."""

    def __init__(
        self,
        session: ClientSession,
        options: AgentOptions,
        tls: Callable[[], ssl.SSLContext],
        token: Callable[[], str] | None,
    ) -> None:
        self._session = session
        self._options = options
        self._tls = tls
        self._token = token
        self._decoder = msgspec.json.Decoder(UsageReport)

    async def report(self, target: Target, *, deadline_s: float = DEADLINE_SECONDS) -> UsageReport:
        """The usage report of the agent. Raises: PullFailed."""
        url = target.url + _PATH
        try:
            async with asyncio.timeout(deadline_s):
                body = await self._body(url)
        except ServerTimeoutError as error:
            raise PullFailed(PullOutcome.UNREACHABLE, f"{url}: {error}") from error
        except TimeoutError:
            raise PullFailed(PullOutcome.TIMEOUT, f"{url}: no complete response within {deadline_s:g} s") from None
        except (ClientError, OSError, ValueError) as error:  # ValueError: invalid URL
            raise PullFailed(PullOutcome.UNREACHABLE, f"{url}: {str(error) or type(error).__name__}") from error
        return self._decoded(body, target, url)

    async def _body(self, url: str) -> bytes:
        headers = {"Authorization": f"Bearer {self._token()}"} if self._token else {}
        async with self._session.get(url, headers=headers, ssl=self._tls(), allow_redirects=False) as response:
            if response.status in _AUTH_FAILURES:
                raise PullFailed(PullOutcome.FORBIDDEN, f"{url}: responds with {response.status}; {self._remedy()}")
            if response.status != HTTPStatus.OK:
                raise PullFailed(PullOutcome.STATUS, f"{url}: responds with {response.status} instead of a report")
            return await _bounded(response, url)

    def _remedy(self) -> str:
        if self._options.token:
            return f"make sure that {self._options.token} contains the token it expects"
        return "specify the file of the token it expects with --agents.token-file"

    def _decoded(self, body: bytes, target: Target, url: str) -> UsageReport:
        try:
            report = self._decoder.decode(body)
        except (ValueError, RecursionError) as error:
            if _version(body) not in (None, VERSION):
                raise _other_version(url, body) from None
            raise PullFailed(PullOutcome.MALFORMED, f"{url}: not a valid report: {error}") from None
        if report.version != VERSION:
            raise _other_version(url, body)
        if report.node != target.node:
            raise PullFailed(
                PullOutcome.NODE, f"{url}: reports node '{report.node[:253]}', but runs on '{target.node}'"
            )
        if problem := implausible(report):
            raise PullFailed(PullOutcome.MALFORMED, f"{url}: {problem}")
        basis = self._options.mig_basis
        if report.mig_basis != basis and any(each.device.startswith(_MIG) for each in report.assignments):
            text = f"weights MIG devices by {report.mig_basis[:32]}, this aggregator by {basis}"
            raise PullFailed(PullOutcome.BASIS, f"{url}: {text}; start both with the same --config.file")
        return report


@asynccontextmanager
async def agent_client(options: AgentOptions) -> AsyncIterator[AgentClient]:
    """A client with one session, which keeps connections open between pulls.

    It does not decompress responses, as a small response could expand beyond the size limit.

    Raises: ConfigError for invalid credential files.
    """
    tls, token = tls_contexts(options), token_file(options)
    headers = {"User-Agent": f"gputally/{gputally.__version__}", "Accept-Encoding": "identity"}
    connector = TCPConnector(limit=MAX_CONNECTIONS, keepalive_timeout=2 * options.interval_s)
    async with ClientSession(
        connector=connector,
        headers=headers,
        auto_decompress=False,
        timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
    ) as session:
        yield AgentClient(session, options, tls, token)


async def _bounded(response: ClientResponse, url: str) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_BYTES:
            raise PullFailed(PullOutcome.OVERSIZED, f"{url}: the response is larger than {MAX_BYTES >> 20} MiB")
    return bytes(body)


class _Versioned(msgspec.Struct):
    version: int


def _version(body: bytes) -> int | None:
    """The version of a report whose other fields may be invalid; None if it has no version."""
    try:
        return msgspec.json.decode(body, type=_Versioned).version
    except (ValueError, RecursionError):
        return None


def _other_version(url: str, body: bytes) -> PullFailed:
    text = f"{url}: report version {_version(body)}, but this gputally reads {VERSION}; upgrade the older of the two"
    return PullFailed(PullOutcome.VERSION, text)

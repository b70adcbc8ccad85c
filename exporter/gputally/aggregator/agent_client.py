"""Requests the usage report of an agent: classified failures, credentials, and a check that its values are possible."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, ServerTimeoutError, TCPConnector

import gputally
from gputally.aggregator.settings import AgentOptions, Target
from gputally.errors import GputallyError
from gputally.files.credentials import Files, Reread, expiry_s, load_certificate, token, trust_authority
from gputally.model.units import US_PER_HOUR
from gputally.model.usage import MIN_JOURNAL_US, VERSION, AssignmentReport, GpuReport, Hour, PullOutcome, UsageReport

_MAX: Final = 1 << 62
"""The ledger stores 64-bit integers; the values of one device hour are a thousand times smaller."""
_MAX_MEMORY: Final = 1 << 100
_MAX_CHARACTERS: Final = 512
_MAX_GPUS: Final = 64
"""The largest nodes have 16, and some can be extended."""
_MAX_ASSIGNMENTS: Final = 20_000
"""Twice the limit of an agent."""
_MAX_HOURS: Final = 100
"""An agent keeps at most 72, and unfinished hours."""
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


def token_file(options: AgentOptions) -> Callable[[], str] | None:
    """A function that returns the current token; None if no token is configured. Raises: ConfigError if unreadable."""
    path = options.token
    return Reread(lambda files: token(path, files, role="--agents.token-file")) if path else None


def tls_contexts(options: AgentOptions) -> Callable[[], ssl.SSLContext]:
    """A function that returns the current TLS context, with the configured CA or else the system's CAs.

    With a configured CA, host names are not verified: requests go to pod IPs, which certificates do not contain. That
    CA should sign certificates of agents only.

    Raises: ConfigError with the file name.
    """
    return Reread(lambda files: _context(options, files))


def client_certificate_expiry(options: AgentOptions) -> Callable[[], int | None] | None:
    """A function that returns when the client certificate expires (s); None if no certificate is configured."""
    path = options.certificate
    return Reread(lambda files: expiry_s(path, files)) if path else None


def _context(options: AgentOptions, files: Files) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if options.authority:
        context.check_hostname = False
        trust_authority(context, options.authority, files, role="--agents.ca-file")
    else:
        context.load_default_certs()
    if options.certificate:
        load_certificate(context, options.certificate, options.key, files, role="--agents.cert-file")
    return context


def implausible(report: UsageReport) -> str:
    """The first impossible part of the report; "" if the report is plausible."""
    times = (report.now_us, report.watermark_us, report.allocations_us or 0, report.journal_start_us)
    if not (_valid_numbers((*times, report.revision, report.since)) and _valid_texts((report.epoch,)) and report.epoch):
        return "the header of the report is implausible"
    if report.journal_start_us > max(0, report.now_us - MIN_JOURNAL_US):
        return "the journal of the report is too short"
    if len(report.gpus) > _MAX_GPUS or len(report.assignments) > _MAX_ASSIGNMENTS:
        return f"{len(report.gpus)} GPUs with {len(report.assignments)} allocations are implausible for one node"
    for gpu in report.gpus:
        if not _gpu_plausible(gpu):
            return f"the report of GPU {gpu.uuid[:_MAX_CHARACTERS]} is implausible"
    for assignment in report.assignments:
        if not _assignment_plausible(assignment):
            name = f"{assignment.namespace}/{assignment.pod}"
            return f"the report of {name[:_MAX_CHARACTERS]} is implausible"
    return ""


def _gpu_plausible(gpu: GpuReport) -> bool:
    return (
        _valid_texts((gpu.uuid, gpu.model, gpu.source))
        and len(gpu.hours) <= _MAX_HOURS
        and all(_valid_numbers((gpu.watermark_us, hour.start_us, hour.unattributed, hour.energy)) for hour in gpu.hours)
    )


def _assignment_plausible(assignment: AssignmentReport) -> bool:
    texts = (
        assignment.device,
        assignment.gpu,
        assignment.namespace,
        assignment.pod,
        assignment.container,
        assignment.resource,
        assignment.pod_uid,
    )
    numbers = (
        assignment.since_us,
        assignment.seen_us,
        assignment.after_us or 0,
        assignment.until_us or 0,
        assignment.share,
    )
    return (
        _valid_texts(texts)
        and _valid_numbers(numbers)
        and len(assignment.hours) <= _MAX_HOURS
        and all(map(_hour_plausible, assignment.hours))
    )


def _hour_plausible(hour: Hour) -> bool:
    """Whether the covered time is within the hour, and `burst` is at most `used`."""
    numbers = (hour.measured, hour.used, hour.burst, hour.memory_us, hour.energy)
    return (
        _valid_numbers(numbers)
        and 0 <= hour.memory < _MAX_MEMORY
        and hour.burst <= hour.used
        and 0 <= hour.start_us <= hour.from_us <= hour.to_us <= hour.start_us + US_PER_HOUR < _MAX
    )


def _valid_numbers(numbers: Iterable[int]) -> bool:
    return all(0 <= number < _MAX for number in numbers)


def _valid_texts(texts: Iterable[str]) -> bool:
    return all(len(text) <= _MAX_CHARACTERS for text in texts)


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
        """The usage report of the agent: what changed since that of the target, or all of it. Raises: PullFailed."""
        url = target.url + _PATH
        try:
            async with asyncio.timeout(deadline_s):
                body = await self._body(url, {"since": str(target.since)} if target.since else {})
        except ServerTimeoutError as error:
            raise PullFailed(PullOutcome.UNREACHABLE, f"{url}: {error}") from error
        except TimeoutError:
            raise PullFailed(PullOutcome.TIMEOUT, f"{url}: no complete response within {deadline_s:g} s") from None
        except (ClientError, OSError, ValueError) as error:  # ValueError: invalid URL
            raise PullFailed(PullOutcome.UNREACHABLE, f"{url}: {str(error) or type(error).__name__}") from error
        return self._decoded(body, target, url)

    async def _body(self, url: str, params: Mapping[str, str]) -> bytes:
        headers = {"Authorization": f"Bearer {self._token()}"} if self._token else {}
        async with self._session.get(
            url, params=params, headers=headers, ssl=self._tls(), allow_redirects=False
        ) as response:
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
        if report.since and (report.epoch, report.since) != target.since:
            raise PullFailed(PullOutcome.MALFORMED, f"{url}: reports changes since another report than asked for")
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

"""Queries of the history in a Prometheus, divided where one is too large for it."""

import ssl
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

import msgspec
from aiohttp import BasicAuth, ClientError, ClientResponse, ClientSession, ClientTimeout

from gputally.errors import PrometheusError
from gputally.model.units import US_PER_SECOND

_TIMEOUT: Final = ClientTimeout(total=120, sock_connect=10)
_MAX_BYTES: Final = 128 << 20
_SHORTEST_S: Final = 60.0
"""A query of a shorter time is not divided."""
_OVERLOADED: Final = (
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.GATEWAY_TIMEOUT,
)
_TOO_LARGE: Final = ("too many samples", "timed out", "too large", "limit", "exceed")
"""Parts of the messages of Prometheus, Thanos, Mimir and VictoriaMetrics."""
_REMEDIES: Final = {
    HTTPStatus.UNAUTHORIZED: "it requires credentials; use --token-file, or --user with --password-file",
    HTTPStatus.FORBIDDEN: "these credentials may not query it",
    HTTPStatus.NOT_FOUND: "this is no Prometheus; use the URL before /api/v1, such as http://localhost:9090",
}


class TimeSpan(NamedTuple):
    """(start_s, end_s] in seconds since the epoch."""

    start_s: float
    end_s: float


def us_of(at_s: float) -> int:
    """Seconds of Prometheus, which have milliseconds, as µs."""
    return round(at_s * 1000) * (US_PER_SECOND // 1000)


class SampledSeries(msgspec.Struct, frozen=True):
    """A series: its labels, and its samples as (time in seconds, value)."""

    metric: dict[str, str]
    values: list[tuple[float, str]] = []
    value: tuple[float, str] | None = None

    @property
    def text(self) -> str:
        """The only or last value, as Prometheus writes it: anyone who is scraped may have written `+Inf`."""
        return self.value[1] if self.value else self.values[-1][1]

    @property
    def number(self) -> float:
        """The only or last value."""
        return float(self.text)


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    result_type: str
    result: list[SampledSeries]


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    status: str
    data: _Data | None = None
    error: str = ""
    warnings: list[str] = []


class _TooLarge(Exception):
    """The server did not complete the query; a shorter one may work."""


class PrometheusAccess(msgspec.Struct, frozen=True, kw_only=True):
    """The server and how to authenticate to it. `matchers` are added to every selector, such as `cluster="a"`."""

    url: str
    authorization: str = ""
    basic: BasicAuth | None = None
    tls: ssl.SSLContext | bool = True
    matchers: str = ""


class PrometheusApi:
    """Queries over one session. Its methods raise PrometheusError."""

    def __init__(self, session: ClientSession, access: PrometheusAccess) -> None:
        self._session = session
        self._access = access
        self._decoder = msgspec.json.Decoder(_Answer)
        self.warnings = set[str]()
        """What the server said of answers that may be incomplete."""

    async def samples(self, selector: str, span: TimeSpan) -> list[SampledSeries]:
        """All samples of the selected series as they were scraped."""
        return await self._divided(lambda part: f"{self._selector(selector)}[{_length(part)}]", span)

    async def last(self, selector: str, span: TimeSpan) -> list[SampledSeries]:
        """The last value of each selected series in the span."""
        found = await self._divided(lambda part: f"last_over_time({self._selector(selector)}[{_length(part)}])", span)
        return list({frozenset(each.metric.items()): each for each in found}.values())

    def _selector(self, selector: str) -> str:
        """The selector, which ends with a brace, with the matchers of the server's users."""
        if not self._access.matchers:
            return selector
        start = selector.removesuffix("}")
        return f"{start}{'' if start.endswith('{') else ','}{self._access.matchers}}}"

    async def _divided(self, expression: Callable[[TimeSpan], str], span: TimeSpan) -> list[SampledSeries]:
        """The answers for the parts of the span that the server can compute, in the order of time."""
        try:
            return await self._query(expression(span), span.end_s)
        except _TooLarge as error:
            if span.end_s - span.start_s <= _SHORTEST_S:
                raise PrometheusError(f"{self._access.url}: {error}, even for one minute") from None
        middle_s = (span.start_s + span.end_s) / 2
        first = await self._divided(expression, TimeSpan(span.start_s, middle_s))
        return [*first, *await self._divided(expression, TimeSpan(middle_s, span.end_s))]

    async def _query(self, query: str, at_s: float) -> list[SampledSeries]:
        url, access = f"{self._access.url.rstrip('/')}/api/v1/query", self._access
        headers = {"Authorization": access.authorization} if access.authorization else {}
        request = self._session.post(
            url,
            data={"query": query, "time": f"{at_s:.3f}"},
            headers=headers,
            auth=access.basic,
            ssl=access.tls,
            timeout=_TIMEOUT,
            allow_redirects=False,
        )
        try:
            async with request as response:
                return self._result(await _body(response), response, url)
        except TimeoutError:
            raise _TooLarge("the query timed out") from None
        except ClientError as error:
            raise PrometheusError(f"{url}: {str(error) or type(error).__name__}; check the URL") from None

    def _result(self, body: bytes, response: ClientResponse, url: str) -> list[SampledSeries]:
        status = response.status
        try:
            answer = self._decoder.decode(body)
        except msgspec.MsgspecError:
            answer = _Answer(status="error", error=body[:200].decode(errors="replace").strip())
        if status == HTTPStatus.OK and answer.status == "success" and answer.data:
            self.warnings.update(answer.warnings)
            return answer.data.result
        if status in _OVERLOADED or (
            status == HTTPStatus.UNPROCESSABLE_ENTITY and any(part in answer.error for part in _TOO_LARGE)
        ):
            raise _TooLarge(answer.error or f"HTTP {status}")
        text = next((text for code, text in _REMEDIES.items() if code == status), answer.error or "no valid response")
        raise PrometheusError(f"{url}: HTTP {status}: {text}")


async def _body(response: ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > _MAX_BYTES:
            raise _TooLarge(f"a response is larger than {_MAX_BYTES >> 20} MiB")
    return bytes(body)


def _length(span: TimeSpan) -> str:
    return f"{round((span.end_s - span.start_s) * 1000)}ms"


def merged(series: Sequence[SampledSeries]) -> list[tuple[float, str]]:
    """The samples of all series by time."""
    return sorted(sample for each in series for sample in each.values)

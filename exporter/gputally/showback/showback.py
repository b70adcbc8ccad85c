"""Fetches the report of each tenant from an aggregator, and delivers it."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec
from aiohttp import ClientSession, ClientTimeout

from gputally.errors import AggregatorRefused, AggregatorUnreachable, DeliveryFailed, DeliveryRejected
from gputally.showback.delivery import ReportPeriod, file_name, write_files
from gputally.showback.showback_options import FORMATS, ShowbackOptions
from gputally.top.api_documents import decoded
from gputally.top.client import AggregatorClient
from gputally.web.report_requests import REPORT_PATH, literal
from gputally.webhook import post, webhook_url

PAUSES_SECONDS: Final = (1.0, 4.0, 15.0, 60.0)
"""Before each repetition of a failed request."""
_TIMEOUT: Final = ClientTimeout(total=300)
"""Longer than a report may take, with some that wait before it."""
_FINAL: Final = (AggregatorRefused, DeliveryRejected)
"""Errors of requests that would fail again."""

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


async def showback(options: ShowbackOptions, *, sleep: Sleep = asyncio.sleep) -> None:
    """Deliver the report of every tenant, one after the other.

    Raises: ConfigError, AggregatorUnreachable, DeliveryFailed.
    """
    url = webhook_url(options.webhook_url_file, flag="--webhook-url-file") if options.webhook_url_file else ""
    async with ClientSession() as session:
        showing = _Showback(options, session, sleep)
        period, tenants = await showing.start()
        for tenant in tenants:
            if options.directory:
                files = [
                    (file_name(tenant, FORMATS[each]), await showing.report(tenant, each)) for each in options.formats
                ]
                write_files(options.directory / period.folder, files)
            if url:
                await showing.post(url, tenant, period)
            sys.stdout.write(f"{tenant}: delivered\n")
    sys.stdout.write(f"{period.start} to {period.end}: reports of {len(tenants)} tenants delivered\n")


class _Showback:
    """Requests of one run."""

    def __init__(self, options: ShowbackOptions, session: ClientSession, sleep: Sleep) -> None:
        self._options = options
        self._session = session
        self._client = AggregatorClient(session, options.url, options.credentials)
        self._sleep = sleep
        self._cut_off = ""

    async def start(self) -> tuple[ReportPeriod, list[str]]:
        """The tenants with GPU-hours in the period. All reports have the cut-off of this answer."""
        asked = {name: self._options.parameters[name] for name in ("window", "time_zone")}
        document = await self._page(f"{REPORT_PATH}?{urlencode(asked | {'by': 'tenant'})}")
        period, rows, following = ReportPeriod(**_ends(document)), document["rows"], document["next"]
        self._cut_off = document["cut_off"]
        while following:
            page = await self._page(following)
            rows, following = [*rows, *page["rows"]], page["next"]
        return period, sorted({row["tenant"] for row in rows})

    async def report(self, tenant: str, form: str) -> bytes:
        """The report of a tenant."""
        asked = {**self._options.parameters, "cut_off": self._cut_off, "tenant": literal(tenant), "format": form}
        return await self._repeated(lambda: self._get(f"{REPORT_PATH}?{urlencode(asked)}"))

    async def post(self, url: str, tenant: str, period: ReportPeriod) -> None:
        """Post the Markdown of a tenant."""
        text = (await self.report(tenant, "markdown")).decode()
        document = msgspec.json.encode({"text": text, "tenant": tenant, "from": period.start, "to": period.end})
        await self._repeated(lambda: post(self._session, url, document))

    async def _page(self, path: str) -> dict[str, Any]:
        body = await self._repeated(lambda: self._get(path))
        return decoded(body, dict[str, Any])

    async def _get(self, path: str) -> bytes:
        return await self._client.get(path, timeout=_TIMEOUT)

    async def _repeated(self, request: Callable[[], Awaitable[T]]) -> T:
        for pause_seconds in PAUSES_SECONDS:
            try:
                return await request()
            except _FINAL:
                raise
            except (AggregatorUnreachable, DeliveryFailed) as error:
                sys.stderr.write(f"gputally: {error}; again in {pause_seconds:g} s\n")
                await self._sleep(pause_seconds)
        return await request()


def _ends(document: dict[str, Any]) -> dict[str, str]:
    return {"start": document["window"]["from"], "end": document["window"]["to"]}

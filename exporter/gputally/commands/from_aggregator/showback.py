"""Fetches the report of each tenant from an aggregator, and delivers it."""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from aiohttp import ClientSession, ClientTimeout

from gputally.client.access import Credentials, credentials_from, is_url
from gputally.client.aggregator import AggregatorClient, decoded
from gputally.client.webhook import post, webhook_url
from gputally.errors import (
    AggregatorRefused,
    AggregatorUnreachable,
    ConfigError,
    DeliveryFailed,
    DeliveryRejected,
    Problem,
)
from gputally.formatting.formats import FILE_FORMATS
from gputally.model.api.paths import REPORT_PATH
from gputally.reports.choices import literal

PAUSES_SECONDS: Final = (1.0, 4.0, 15.0, 60.0)
"""Before each repetition of a failed request."""
_TIMEOUT: Final = ClientTimeout(total=300)
"""Longer than a report may take, with some that wait before it."""
_FINAL: Final = (AggregatorRefused, DeliveryRejected)
"""Errors of requests that would fail again."""
T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


class ReportPeriod(NamedTuple):
    """Both ends of the reports, in ISO 8601."""

    start: str
    end: str

    @property
    def folder(self) -> str:
        """The name of a folder for them: both days."""
        return f"{self.start[:10]}_{self.end[:10]}"


def file_name(tenant: str, extension: str) -> str:
    """The file of a tenant; characters that have a meaning in paths are encoded as in a URL."""
    name = quote(tenant, safe=" @")
    return f"{name.replace('.', '%2E', 1) if name.startswith('.') else name or 'none'}.{extension}"


def write_files(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write each named file as a whole. Raises: ConfigError if the folder cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, body in files:
            partial = folder / f".{name}.partial"
            partial.write_bytes(body)
            partial.replace(folder / name)
    except OSError as error:
        raise ConfigError([Problem(str(folder), "--directory", f"cannot be written: {error.strerror}")]) from None


@dataclass(frozen=True, kw_only=True)
class ShowbackOptions:
    """Where to ask, for which report, and where to deliver it: files, a webhook or both.

    `parameters` are those of `/api/v1/report`, for every tenant.
    """

    url: str
    credentials: Credentials
    parameters: Mapping[str, str]
    directory: Path | None
    formats: tuple[str, ...]
    webhook_url_file: Path | None


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
                    (file_name(tenant, FILE_FORMATS[each]), await showing.report(tenant, each))
                    for each in options.formats
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


def showback_options(parsed: Namespace) -> ShowbackOptions:
    """The parsed flags. Raises: ConfigError."""
    problems = []
    if not is_url(parsed.url):
        problems.append(Problem("", "--url", f"'{parsed.url}' is not a URL; use one such as http://localhost:9836"))
    if not (parsed.directory or parsed.webhook_url_file):
        problems.append(Problem("", "--directory", "name a folder for files, or --webhook-url-file, or both"))
    if parsed.user and not parsed.password_file:
        problems.append(Problem("", "--user", "requires --password-file"))
    if problems:
        raise ConfigError(problems)
    return ShowbackOptions(
        url=parsed.url,
        credentials=credentials_from(parsed),
        parameters={
            "window": parsed.window,
            "by": parsed.by,
            "top": parsed.top,
            "time_zone": parsed.time_zone,
        },
        directory=parsed.directory,
        formats=parsed.formats,
        webhook_url_file=parsed.webhook_url_file,
    )

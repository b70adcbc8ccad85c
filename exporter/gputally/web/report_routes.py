"""The routes of what the ledger answers: reports, preemptions, the page `/report` and the description of the API."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec
from aiohttp import web
from yarl import URL

from gputally.answers.parameters import InvalidRequest
from gputally.formatting.html_pages import PAGE_HEADERS
from gputally.model.api.paths import PREEMPTIONS_PATH, REPORT_PATH, WAITS_PATH
from gputally.web.authentication import TENANTS
from gputally.web.openapi import NOTHING_MORE, Described, openapi
from gputally.web.report_page import report_page
from gputally.web.report_processes import ReportRunner, ReportUnavailable
from gputally.web.report_requests import (
    FORMATS,
    PREEMPTIONS_COMMAND,
    WAITS_COMMAND,
    ReportRequest,
    preemption_request,
    wait_request,
)
from gputally.web.responses import kept_response, packed, wants_gzip
from gputally.web.server import query_values
from gputally.web.turns import RETRY_AFTER, try_again

PAGE_PATH: Final = "/report"
OPENAPI_PATH: Final = "/api/v1/openapi.json"
_MEDIA_TYPES: Final = {**FORMATS, "table": "text/plain"}
"""Media types by the values of `format`; preemptions also have the table that the command prints."""


class Parse(Protocol):
    """Reads the parameters of a request."""

    def __call__(self, query: Mapping[str, Sequence[str]], *, tenants: Collection[str] | None) -> ReportRequest:
        """Raises: InvalidRequest."""


def report_routes(
    runner: ReportRunner, *, version: str, more: Described = NOTHING_MORE
) -> tuple[web.AbstractRouteDef, ...]:
    """The routes of reports that `runner` makes, described with `more` for this version of the program."""
    described = msgspec.json.encode(openapi(version, more=more))
    shorter = packed(described, gzipped=True)

    async def report(request: web.Request) -> web.StreamResponse:
        return await _served(request, runner, ReportRequest.of, command="report")

    async def preemptions(request: web.Request) -> web.StreamResponse:
        return await _served(request, runner, preemption_request, command=PREEMPTIONS_COMMAND)

    async def waits(request: web.Request) -> web.StreamResponse:
        return await _served(request, runner, wait_request, command=WAITS_COMMAND)

    async def description(request: web.Request) -> web.StreamResponse:
        gzipped = wants_gzip(request)
        return _response(request, shorter if gzipped else described, "json", gzipped=gzipped)

    async def page(request: web.Request) -> web.StreamResponse:
        found = await report_page(runner, query_values(request), tenants=TENANTS.get())
        headers = PAGE_HEADERS | (RETRY_AFTER if found.is_busy else {})
        return web.Response(status=found.status, text=found.html, content_type="text/html", headers=headers)

    return (
        web.get(REPORT_PATH, report),
        web.get(PREEMPTIONS_PATH, preemptions),
        web.get(WAITS_PATH, waits),
        web.get(PAGE_PATH, page),
        web.get(OPENAPI_PATH, description),
    )


async def _served(request: web.Request, runner: ReportRunner, parse: Parse, *, command: str) -> web.StreamResponse:
    """What the command prints, JSON by pages. Raises: TooBusy."""
    gzipped = wants_gzip(request)
    try:
        asked = parse(query_values(request), tenants=TENANTS.get())

        def finish(body: bytes) -> bytes:
            if asked.format != "json":
                return packed(body, gzipped=gzipped)
            document: dict[str, Any] = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
            cut_off = msgspec.json.decode(document["cut_off"], type=str)
            same = parse(query_values(request) | {"cut_off": [cut_off]}, tenants=TENANTS.get())
            if same.arguments != asked.arguments:  # for its other pages, which name the cut-off
                runner.keep(body, same.arguments, command=command)
            return packed(_page(document, asked, request.rel_url.update_query(cut_off=cut_off)), gzipped=gzipped)

        body = await runner.run(asked.arguments, command=command, finish=finish)
    except InvalidRequest as error:
        return web.Response(status=400, text=f"{error}\n")
    except ReportUnavailable as error:
        return try_again(str(error))
    return _response(request, body, asked.format, gzipped=gzipped)


def _page(document: dict[str, Any], asked: ReportRequest, address: URL) -> bytes:
    """The document with some of its rows, their total number, and the address of the next ones."""
    rows = msgspec.json.decode(document["rows"], type=list[msgspec.Raw])
    end = asked.offset + asked.limit
    following = str(address.update_query(limit=asked.limit, offset=end)) if end < len(rows) else None
    page = {"rows": rows[asked.offset : end], "row_count": len(rows), "next": following}
    return msgspec.json.format(msgspec.json.encode(document | page), indent=2)


def _response(request: web.Request, body: bytes, chosen: str, *, gzipped: bool) -> web.StreamResponse:
    """The packed body in a format, or that the client has it already."""
    headers = PAGE_HEADERS if chosen == "html" else None
    return kept_response(request, body, gzipped=gzipped, content_type=_MEDIA_TYPES[chosen], headers=headers)

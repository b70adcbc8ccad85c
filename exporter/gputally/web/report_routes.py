"""The routes of what the ledger answers: reports, preemptions, the page `/report` and the description of the API."""

from typing import Any, Final

import msgspec
from aiohttp import web
from msgspec import structs
from yarl import URL

from gputally.answers.parameters import InvalidRequest
from gputally.formatting.html_pages import PAGE_HEADERS
from gputally.model.api.paths import PREEMPTIONS_PATH, REPORT_PATH, WAITS_PATH
from gputally.questions.preemptions import Preemptions
from gputally.questions.report import Report
from gputally.questions.waits import Waits
from gputally.web.authentication import TENANTS
from gputally.web.ledger_process import ReportUnavailable
from gputally.web.openapi import MEDIA_TYPES, NOTHING_MORE, Described, openapi
from gputally.web.report_page import report_page
from gputally.web.report_processes import ReportRunner
from gputally.web.report_requests import Asked, asked
from gputally.web.responses import kept_response, packed, wants_gzip
from gputally.web.server import query_values
from gputally.web.turns import RETRY_AFTER, try_again

Served = Report | Waits | Preemptions
PAGE_PATH: Final = "/report"
OPENAPI_PATH: Final = "/api/v1/openapi.json"


def report_routes(
    runner: ReportRunner, *, version: str, more: Described = NOTHING_MORE
) -> tuple[web.AbstractRouteDef, ...]:
    """The routes of reports that `runner` makes, described with `more` for this version of the program."""
    described = msgspec.json.encode(openapi(version, more=more))
    shorter = packed(described, gzipped=True)

    def route(path: str, question: type[Served]) -> web.AbstractRouteDef:
        async def answer(request: web.Request) -> web.StreamResponse:
            return await _served(request, runner, question)

        return web.get(path, answer)

    async def description(request: web.Request) -> web.StreamResponse:
        gzipped = wants_gzip(request)
        return _response(request, shorter if gzipped else described, "json", gzipped=gzipped)

    async def page(request: web.Request) -> web.StreamResponse:
        found = await report_page(runner, query_values(request), tenants=TENANTS.get())
        headers = PAGE_HEADERS | (RETRY_AFTER if found.is_busy else {})
        return web.Response(
            status=found.status, body=found.html, content_type="text/html", charset="utf-8", headers=headers
        )

    return (
        route(REPORT_PATH, Report),
        route(PREEMPTIONS_PATH, Preemptions),
        route(WAITS_PATH, Waits),
        web.get(PAGE_PATH, page),
        web.get(OPENAPI_PATH, description),
    )


async def _served(request: web.Request, runner: ReportRunner, kind: type[Served]) -> web.StreamResponse:
    """What the command of a question prints, JSON by pages. Raises: TooBusy."""
    gzipped = wants_gzip(request)
    try:
        given = asked(kind, query_values(request), tenants=TENANTS.get())
        question = given.question

        def finish(body: bytes) -> bytes:
            found = _rows(body, given, request, runner) if question.output == "json" else body
            return packed(found, gzipped=gzipped)

        body = await runner.run(question, finish=finish)
    except InvalidRequest as error:
        return web.Response(status=400, text=f"{error}\n")
    except ReportUnavailable as error:
        return try_again(str(error))
    return _response(request, body, question.output, gzipped=gzipped)


def _rows(body: bytes, given: Asked[Served], request: web.Request, runner: ReportRunner) -> bytes:
    """The page of rows that is asked for; its other pages, which name the cut-off, are of the same body."""
    document: dict[str, Any] = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    cut_off = msgspec.json.decode(document["cut_off"], type=str)
    if given.question.cut_off != cut_off:
        runner.keep_also(structs.replace(given.question, cut_off=cut_off), of=given.question)
    return _page(document, given, request.rel_url.update_query(cut_off=cut_off))


def _page(document: dict[str, Any], given: Asked[Served], address: URL) -> bytes:
    """The document with some of its rows, their total number, and the address of the next ones."""
    rows = msgspec.json.decode(document["rows"], type=list[msgspec.Raw])
    end = given.offset + given.limit
    following = str(address.update_query(limit=given.limit, offset=end)) if end < len(rows) else None
    page = {"rows": rows[given.offset : end], "row_count": len(rows), "next": following}
    return msgspec.json.format(msgspec.json.encode(document | page), indent=2)


def _response(request: web.Request, body: bytes, chosen: str, *, gzipped: bool) -> web.StreamResponse:
    """The packed body in a format, or that the client has it already."""
    headers = PAGE_HEADERS if chosen == "html" else None
    return kept_response(request, body, gzipped=gzipped, content_type=MEDIA_TYPES[chosen], headers=headers)

"""The routes of waiting pods: `/pending`, `/pending/why`, and `pending`, `why`, `what-if` and `fits` of `/api/v1`.

The first two are pages that need no JavaScript.
"""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, Protocol

import msgspec
from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.fleet.pending_now import PendingNow, VerdictsDisabled
from gputally.answers.fits import fits_document
from gputally.answers.forecast import forecast, forecast_of_manifest
from gputally.answers.parameters import InvalidRequest, expect_known
from gputally.answers.past_pods import PastPods
from gputally.answers.pending_list import pending_list
from gputally.answers.planned_pods import planned_by_question
from gputally.answers.viewer import Viewer
from gputally.answers.why import NoSuchPods, NotYetJudged, why_document
from gputally.formatting.html_pages import PAGE_HEADERS
from gputally.model.api.paths import FITS_PATH, PENDING_PATH, WHAT_IF_PATH, WHY_PATH
from gputally.model.api.what_if import BODY_BYTES
from gputally.model.api.why import NOT_FOUND_HEADER
from gputally.questions.fits import Fits
from gputally.questions.parameter import InvalidQuestion
from gputally.questions.pending import Pending
from gputally.questions.what_if import WhatIfPods
from gputally.questions.why import Why
from gputally.web.authentication import TENANTS
from gputally.web.pending_pages import WHY_PAGE_PATH, pending_page, why_page
from gputally.web.report_requests import plainly_asked, rejected
from gputally.web.responses import json_answer
from gputally.web.server import query_values
from gputally.web.turns import ANSWERS, Turns, try_again

PENDING_PAGE_PATH: Final = "/pending"
BODIES: Final = {WHAT_IF_PATH: BODY_BYTES}
_READING: Final = 8
"""Bodies that arrive at the same time, up to `_READING_OF_CLIENT` of one client, as they may arrive slowly."""
_READING_OF_CLIENT: Final = 2
_BODY_SECONDS: Final = 10.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ReadPending(Protocol):
    """Reads the state."""

    def __call__(self, *, with_room: bool) -> PendingNow:
        """The state now, with a copy of the room if what would help is asked for."""


class PendingRoutes:
    """Answers from `read`, which must not block, and from `past` about pods that are gone. A thread does the rest."""

    def __init__(self, read: ReadPending, past: PastPods) -> None:
        self._read = read
        self._past = past
        self._reading = Turns(_READING, places=_READING, of_client=_READING_OF_CLIENT)

    def routes(self) -> tuple[web.AbstractRouteDef, ...]:
        """All routes."""
        return (
            web.get(PENDING_PATH, _guarded(self.pending)),
            web.get(WHY_PATH, _guarded(self.why)),
            web.get(FITS_PATH, _guarded(self.fits)),
            web.get(WHAT_IF_PATH, _guarded(self.what_if)),
            web.post(WHAT_IF_PATH, _guarded(self.what_if_of_manifest)),
            web.get(PENDING_PAGE_PATH, _guarded(self.page)),
            web.get(WHY_PAGE_PATH, _guarded(self.page_of_pod)),
        )

    async def pending(self, request: web.Request) -> web.Response:
        """The waiting pods."""
        asked, viewer = plainly_asked(Pending, query_values(request)), Viewer(TENANTS.get())

        def explain(now: PendingNow) -> bytes:
            document = pending_list(now, asked, viewer)
            end = asked.offset + asked.limit
            if end < max(document.pod_count, document.workload_count):
                address = str(request.rel_url.update_query(limit=asked.limit, offset=end))
                document = replace(document, next=address)
            return msgspec.json.encode(document)

        return await self._answered(request, explain, with_room=asked.helps)

    async def why(self, request: web.Request) -> web.Response:
        """Why a pod waits."""
        asked, viewer = plainly_asked(Why, query_values(request)), Viewer(TENANTS.get())
        return await self._answered(request, lambda now: _encoded(why_document(now, asked, viewer, past=self._past)))

    async def fits(self, request: web.Request) -> web.Response:
        """What pod sizes fit now."""
        asked, viewer = plainly_asked(Fits, query_values(request)), Viewer(TENANTS.get())
        return await self._answered(request, lambda now: _encoded(fits_document(now, asked, viewer)))

    async def what_if(self, request: web.Request) -> web.Response:
        """The forecast of a pod with these parameters."""
        asked, viewer = plainly_asked(WhatIfPods, query_values(request)), Viewer(TENANTS.get())

        def explain(now: PendingNow) -> bytes:
            return _encoded(forecast(now, [planned_by_question(asked, now.room)], viewer))

        return await self._answered(request, explain)

    async def what_if_of_manifest(self, request: web.Request) -> web.Response:
        """The forecast of the pods of a manifest."""
        expect_known(query_values(request), ())
        viewer = Viewer(TENANTS.get())
        body = await self._body(request)
        return await self._answered(request, lambda now: _encoded(forecast_of_manifest(now, body, viewer)))

    async def page(self, request: web.Request) -> web.Response:
        """The page of waiting pods."""
        asked, viewer = plainly_asked(Pending, query_values(request) | {"helps": ["true"]}), Viewer(TENANTS.get())

        return await self._shown(request, lambda now: pending_page(pending_list(now, asked, viewer), asked))

    async def page_of_pod(self, request: web.Request) -> web.Response:
        """The page about one pod, or about the pods of a job."""
        asked, viewer = plainly_asked(Why, query_values(request)), Viewer(TENANTS.get())
        return await self._shown(
            request, lambda now: why_page(why_document(now, asked, viewer, past=self._past), asked)
        )

    async def _shown(self, request: web.Request, explain: Callable[[PendingNow], str]) -> web.Response:
        answers = request.app[ANSWERS]
        body = await answers.answer(lambda: self._read(with_room=True), lambda now: explain(now).encode())
        return web.Response(body=body, content_type="text/html", charset="utf-8", headers=PAGE_HEADERS)

    async def _body(self, request: web.Request) -> bytes:
        """The body, whose length the access policy has limited. Raises: InvalidRequest, TooBusy."""
        async with self._reading.turn():
            try:
                async with asyncio.timeout(_BODY_SECONDS):
                    return await request.read()
            except TimeoutError:
                raise InvalidRequest(f"the body did not arrive within {_BODY_SECONDS:.0f} s") from None

    async def _answered(
        self, request: web.Request, explain: Callable[[PendingNow], bytes], *, with_room: bool = True
    ) -> web.Response:
        return await json_answer(request, lambda: self._read(with_room=with_room), explain)


def _guarded(handler: Handler) -> Handler:
    """With the responses to what cannot be answered."""

    async def guarded(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except InvalidRequest as error:
            return _said(HTTPStatus.BAD_REQUEST, str(error))
        except InvalidQuestion as error:
            return _said(HTTPStatus.BAD_REQUEST, str(rejected(error)))
        except NoSuchPods as error:
            return _said(HTTPStatus.NOT_FOUND, str(error), {NOT_FOUND_HEADER: "true"})
        except VerdictsDisabled:
            return _said(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "waits are not explained; start the aggregator with --pending.reasons=on",
            )
        except NotYetJudged as error:
            return try_again(f"{error} was created a moment ago; ask again")

    return guarded


def _said(status: HTTPStatus, text: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=f"{text}\n", headers=headers)


def _encoded(document: Struct) -> bytes:
    return msgspec.json.encode(document)

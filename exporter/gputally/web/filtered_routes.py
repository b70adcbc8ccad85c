"""`/api/v1/allocations` and `/api/v1/at-risk`: documents as JSON, of what matches all query parameters."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec
from aiohttp import web

from gputally.accounting.fleet.work_at_risk import RiskNow
from gputally.answers import allocations, at_risk
from gputally.answers.allocations import AllocationsNow
from gputally.model.api.paths import ALLOCATIONS_PATH, AT_RISK_PATH
from gputally.web.authentication import TENANTS
from gputally.web.responses import json_answer

Now = TypeVar("Now")
Now_contra = TypeVar("Now_contra", contravariant=True)
Filters = Mapping[str, Collection[str]]
"""The values that each parameter allows."""


class Derivation(Protocol[Now_contra]):
    """Makes a document of what is so now."""

    def __call__(self, now: Now_contra, filters: Filters, *, tenants: Collection[str] | None) -> msgspec.Struct:
        """The document; `tenants` is None for a user who may see all."""


def allocations_route(read: Callable[[], AllocationsNow]) -> web.AbstractRouteDef:
    """Who holds or wants which GPUs now."""
    return filtered_route(ALLOCATIONS_PATH, allocations.FILTERS, read=read, document=allocations.document)


def at_risk_route(read: Callable[[], RiskNow]) -> web.AbstractRouteDef:
    """The work that a preemption would destroy now."""
    return filtered_route(AT_RISK_PATH, at_risk.FILTERS, read=read, document=at_risk.document)


def filtered_route(
    path: str, parameters: Sequence[str], *, read: Callable[[], Now], document: Derivation[Now]
) -> web.AbstractRouteDef:
    """A route with these query parameters. `read` must not block; a thread does the rest."""

    async def respond(request: web.Request) -> web.Response:
        filters = {name: frozenset(request.query.getall(name)) for name in request.query}
        if unknown := filters.keys() - set(parameters):
            text = f"unknown parameter {', '.join(sorted(unknown))}; use {', '.join(parameters)}\n"
            return web.Response(status=400, text=text)
        tenants = TENANTS.get()
        return await json_answer(
            request, read, lambda now: msgspec.json.encode(document(now, filters, tenants=tenants))
        )

    return web.get(path, respond)

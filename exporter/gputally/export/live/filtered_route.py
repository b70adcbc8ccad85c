"""Routes that serve a document as JSON, of the objects that match all query parameters."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec
from aiohttp import web

from gputally.export.authenticator import TENANTS
from gputally.export.negotiate import gzip_accepted
from gputally.export.turns import ANSWERS
from gputally.export.web import compressed, joined

Now = TypeVar("Now")
Now_contra = TypeVar("Now_contra", contravariant=True)
Filters = Mapping[str, Collection[str]]
"""The values that each parameter allows."""


class Derivation(Protocol[Now_contra]):
    """Makes a document of what is so now."""

    def __call__(self, now: Now_contra, filters: Filters, *, tenants: Collection[str] | None) -> msgspec.Struct:
        """The document; `tenants` is None for a user who may see all."""


def filtered_route(
    path: str, parameters: Sequence[str], *, read: Callable[[], Now], document: Derivation[Now]
) -> web.AbstractRouteDef:
    """A route with these query parameters. `read` must not block; a thread does the rest."""

    async def respond(request: web.Request) -> web.Response:
        filters = {name: frozenset(request.query.getall(name)) for name in request.query}
        if unknown := filters.keys() - set(parameters):
            text = f"unknown parameter {', '.join(sorted(unknown))}; use {', '.join(parameters)}\n"
            return web.Response(status=400, text=text)
        tenants, gzipped = TENANTS.get(), gzip_accepted(joined(request, "Accept-Encoding"))

        def body(now: Now) -> bytes:
            found = msgspec.json.encode(document(now, filters, tenants=tenants))
            return compressed(found) if gzipped else found

        found = await request.app[ANSWERS].answer(read, body)
        headers = {"Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if gzipped else {})
        return web.Response(body=found, content_type="application/json", headers=headers)

    return web.get(path, respond)

"""Bodies of responses: JSON of what is so now, compression, and validators of what clients keep."""

import gzip
import hashlib
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from aiohttp import ETag, web

from gputally.exposition.negotiation import gzip_accepted
from gputally.web.turns import ANSWERS

_GZIP_LEVEL: Final = 1
"""A third of the time of level 6, for a sixth more bytes."""
_VARY: Final = {"Vary": "Accept-Encoding"}
_KEPT: Final = {"Cache-Control": "private, no-cache", **_VARY}
"""The client may keep the body, if it asks each time whether it is still so."""

Now = TypeVar("Now")


def joined(request: web.Request, header: str) -> str:
    """A header that may be repeated, as one list."""
    return ",".join(request.headers.getall(header, ()))


def wants_gzip(request: web.Request) -> bool:
    """Whether the client accepts a compressed body."""
    return gzip_accepted(joined(request, "Accept-Encoding"))


def packed(body: bytes, *, gzipped: bool) -> bytes:
    """The body, compressed for speed rather than size if it is to be gzipped."""
    return gzip.compress(body, _GZIP_LEVEL, mtime=0) if gzipped else body


def response(
    body: bytes, *, gzipped: bool, content_type: str = "application/json", headers: Mapping[str, str] | None = None
) -> web.Response:
    """A response with a packed body."""
    encoding = {"Content-Encoding": "gzip"} if gzipped else {}
    charset = None if content_type == "application/json" else "utf-8"
    return web.Response(
        body=body, content_type=content_type, charset=charset, headers={**_VARY, **encoding, **(headers or {})}
    )


async def json_answer(request: web.Request, read: Callable[[], Now], answer: Callable[[Now], bytes]) -> web.Response:
    """What `answer` makes in a thread of what is read, as JSON. Raises: TooBusy, and what both raise."""
    gzipped = wants_gzip(request)
    body = await request.app[ANSWERS].answer(read, lambda now: packed(answer(now), gzipped=gzipped))
    return response(body, gzipped=gzipped)


def kept_response(
    request: web.Request, body: bytes, *, gzipped: bool, content_type: str, headers: Mapping[str, str] | None = None
) -> web.Response:
    """A response with the ETag of its packed body, or 304 if the client has it already."""
    tag, headers = ETag(hashlib.sha256(body).hexdigest()[:32], is_weak=True), _KEPT | dict(headers or {})
    if any(each.value in (tag.value, "*") for each in request.if_none_match or ()):
        found = web.Response(status=304, headers=headers)
    else:
        found = response(body, gzipped=gzipped, content_type=content_type, headers=headers)
    found.etag = tag
    return found

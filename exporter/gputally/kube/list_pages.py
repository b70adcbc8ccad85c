"""Lists beside the watches, in pages, so that a large cluster's objects are never in memory at once."""

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, TypeVar

import msgspec

from gputally.errors import MalformedObject
from gputally.kube.api import Api
from gputally.kube.failures import Failure, RequestFailed
from gputally.kube.list_items import ListItems
from gputally.kube.reflector.events import identified
from gputally.kube.reflector.reflector import UNDECODABLE
from gputally.kube.reflector.resource import IDLE_SECONDS
from gputally.model.kube.meta import Object

PAGE: Final = 500
"""As client-go's."""
Found = TypeVar("Found", bound=Object)


async def list_pages(
    api: Api, path: str, shape: type[Found], *, selector: str = "", keep: Callable[[Found], bool]
) -> AsyncIterator[list[Found]]:
    """The objects that `keep` accepts, as they were at one moment after the call; invalid ones are skipped.

    Raises: ApiError, also VersionExpired if the server has forgotten that moment before the last page.
    """
    params = {"limit": str(PAGE)} | ({"fieldSelector": selector} if selector else {})
    decode = msgspec.json.Decoder(shape).decode
    while True:
        items = ListItems()
        async with api.stream(path, params, split=items.feed, idle_seconds=IDLE_SECONDS) as chunks:
            try:
                async for chunk in chunks:
                    if found := _decoded(chunk, decode, keep):
                        yield found
                last = items.end()
            except ValueError as error:
                raise RequestFailed(f"{api.server}{path}: unexpected response: {error}", Failure.SERVER) from error
        yield _decoded(last, decode, keep)
        if not items.continuation:
            return
        params["continue"] = items.continuation


def _decoded(
    items: Iterable[bytes | memoryview], decode: Callable[[bytes | memoryview], Found], keep: Callable[[Found], bool]
) -> list[Found]:
    found = []
    for item in items:
        try:
            each = decode(item)
            identified(each)
        except (*UNDECODABLE, MalformedObject):
            continue  # the watch counts and logs it
        if keep(each):
            found.append(each)
    return found

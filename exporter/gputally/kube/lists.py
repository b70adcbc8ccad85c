"""Lists of objects, parsed while they arrive and read in pages, so that 100 MB of pods are never in memory at once.

The API server writes a list's own metadata, then the items, each of which begins with its metadata. Of custom
resources it sorts the keys: the list's metadata come last, and items begin with their apiVersion and kind. So the
separator of two items is `},` and the beginning of the first one. It cannot be part of a string, where quotes are
escaped, nor occur elsewhere in the listed objects: none contains an array of objects that begin so. A document in any
other form is decoded as a whole at its end.

Source: k8s.io/apimachinery pkg/runtime/serializer/json/collections.go.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from gputally.errors import MalformedObject
from gputally.kube.api import Api
from gputally.kube.failures import Failure, RequestFailed
from gputally.kube.watch_events import UNDECODABLE, identified
from gputally.kube.watched import IDLE_SECONDS
from gputally.model.kube.meta import Object

_ITEMS: Final = b'"items":['
_FIRST: Final = re.compile(rb'\{(?P<custom>"apiVersion":"[^"]*","kind":"[^"]*",)?"metadata":\{')
"""How an item begins."""
_LONGEST_FIRST: Final = 1024
_END: Final = b"]}"
PAGE: Final = 500
"""Objects in one page of a list, as in client-go."""
Found = TypeVar("Found", bound=Object)


class _ListMeta(Struct, rename="camel", frozen=True):
    resource_version: str = ""
    continuation: str = field(default="", name="continue")


class _Document(Struct, frozen=True):
    metadata: _ListMeta | None = None
    items: list[Raw] | None = None


_decode = msgspec.json.Decoder(_Document).decode


class ListItems:
    """Incremental parser.

    After `end` at the latest, `version` is the list's resourceVersion, and `continuation` names the next page, "" after
    the last one.
    """

    def __init__(self) -> None:
        self.version = ""
        self.continuation = ""
        self._rest = b""
        self._first = b""
        """How each item begins; not empty once the first one has arrived."""
        self._is_custom = False
        self._whole: list[bytes] = []
        """All chunks of a document in another order."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The items that `chunk` completes, perhaps none. Raises: ValueError if the document is not a list."""
        if self._whole:
            self._whole.append(chunk)
            return []
        data = self._rest + chunk
        if not self._first:
            data = self._after_head(data)
        if not self._first:
            self._rest = data
            return []
        *whole, self._rest = data.split(b"}," + self._first)
        return [self._first + item + b"}" for item in whole]

    def end(self) -> list[bytes]:
        """The remaining items. Raises: ValueError if the document is not a list, or incomplete."""
        if self._first:
            document = _decode(b"{" + _ITEMS + self._first + self._rest)
        else:
            document = _decode(b"".join(self._whole or [self._rest]))
        if not self._first or self._is_custom:
            self._read_head(document)
        return [bytes(item) for item in document.items or ()]

    def _after_head(self, data: bytes) -> bytes:
        """The data after the beginning of the first item, if that has arrived in the expected form; else `data`."""
        head, found, items = data.partition(_ITEMS)
        first = _FIRST.match(items)
        if not found or (not first and len(items) < _LONGEST_FIRST):
            return data
        is_custom = bool(first and first["custom"])
        if not first or is_custom == (b'"metadata"' in head):
            self._whole.append(data)
            return b""
        if not is_custom:
            self._read_head(_decode(head + _ITEMS + _END))
        self._first, self._is_custom = first[0], is_custom
        return items[first.end() :]

    def _read_head(self, document: _Document) -> None:
        """Raises: ValueError if the document is not a list."""
        if document.metadata is None:
            raise ValueError("the list has no metadata")
        self.version = document.metadata.resource_version
        self.continuation = document.metadata.continuation


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

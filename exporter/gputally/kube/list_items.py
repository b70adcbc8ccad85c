"""Parses the items of a list document while it arrives, so that 100 MB of pods are never in memory at once.

The API server writes a list's own metadata, then the items, each of which begins with its metadata. The separator of
two items, `},{"metadata":{`, cannot be part of a string, where quotes are escaped, nor occur elsewhere in the listed
objects: none contains an array of objects that begin with metadata. A document in another order (custom resources are
sorted by key) is decoded as a whole at its end.

Source: k8s.io/apimachinery pkg/runtime/serializer/json/collections.go.
"""

from typing import Final

import msgspec
from msgspec import Raw, Struct, field

_ITEMS: Final = b'"items":['
_FIRST: Final = b'{"metadata":{'
_BETWEEN: Final = b'},{"metadata":{'
_END: Final = b"]}"


class _ListMeta(Struct, rename="camel", frozen=True):
    resource_version: str = ""
    continuation: str = field(default="", name="continue")


class _Document(Struct, frozen=True):
    metadata: _ListMeta
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
        self._in_items = False
        self._whole: list[bytes] = []
        """All chunks of a document in another order."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The items that `chunk` completes, perhaps none. Raises: ValueError if the document is not a list."""
        if self._whole:
            self._whole.append(chunk)
            return []
        data = self._rest + chunk
        if not self._in_items:
            data = self._after_head(data)
        if not self._in_items:
            self._rest = data
            return []
        *whole, self._rest = data.split(_BETWEEN)
        return [_FIRST + item + b"}" for item in whole]

    def end(self) -> list[bytes]:
        """The remaining items. Raises: ValueError if the document is not a list, or incomplete."""
        if not self._in_items:
            document = _decode(b"".join(self._whole or [self._rest]))
            self._read_head(document)
            return [bytes(item) for item in document.items or ()]
        item, ended, after = self._rest.rpartition(_END)
        if not ended or after.strip():
            raise ValueError("the list is incomplete")
        msgspec.json.decode(_FIRST + item, type=Raw)  # ValueError if the data ends with another array
        return [_FIRST + item]

    def _after_head(self, data: bytes) -> bytes:
        """The data after the beginning of the first item, if that has arrived in the expected form; else `data`."""
        head, found, items = data.partition(_ITEMS)
        if not found or len(items) < len(_FIRST):
            return data
        if not items.startswith(_FIRST) or b'"metadata"' not in head:
            self._whole.append(data)
            return b""
        self._read_head(_decode(head + _ITEMS + _END))
        self._in_items = True
        return items.removeprefix(_FIRST)

    def _read_head(self, document: _Document) -> None:
        self.version = document.metadata.resource_version
        self.continuation = document.metadata.continuation

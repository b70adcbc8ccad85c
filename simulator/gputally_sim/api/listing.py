"""Complete lists, and pages of a consistent snapshot."""

import base64
import binascii
from bisect import bisect_right
from collections import OrderedDict
from typing import NamedTuple

import msgspec

from gputally_sim.api import encoding, refusals
from gputally_sim.api.requests import ListOptions
from gputally_sim.api.resources import Resource
from gputally_sim.api.store import Store, Stored
from gputally_sim.documents import Doc, Key

_SNAPSHOTS_KEPT = 32
_INCONSISTENT = -1
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter."
)

Items = list[tuple[Key, Stored]]


class _Token(NamedTuple):
    """A continue token: the snapshot's version and the last key of the page."""

    version: int
    last: Key


class Lister:
    """Serves lists, and keeps the snapshots of paged lists."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._snapshots: OrderedDict[tuple[str, int], Items] = OrderedDict()

    def page(self, resource: Resource, options: ListOptions, *, partial: bool) -> bytes:
        """The requested list document. Raises: StatusError 410 if its snapshot has expired."""
        self._check_version(options)
        version, items = self._start(resource, options)
        items = [item for item in items if options.selects(item[1].doc)]
        metadata: Doc = {"resourceVersion": str(version)}
        # a list "at any version" is served from the watch cache, which does not page
        if 0 < options.limit < len(items) and options.version != 0:
            metadata["continue"] = _encode(_Token(version, items[options.limit - 1][0]))
            if not options.selective:
                metadata["remainingItemCount"] = len(items) - options.limit
            items = items[: options.limit]
        return encoding.listing(resource, metadata, [stored for _, stored in items], partial=partial)

    def _check_version(self, options: ListOptions) -> None:
        if options.match and options.version is None:
            text = (
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
            )
            raise refusals.invalid("ListOptions.meta.k8s.io", "", text)
        if options.version and options.version > self._store.version:
            raise refusals.too_large_version(options.version, self._store.version)
        if options.match == "Exact" and options.version != self._store.version:
            raise refusals.expired("The resourceVersion for the provided list is too old.")

    def _start(self, resource: Resource, options: ListOptions) -> tuple[int, Items]:
        """The version and remaining items of the list's snapshot."""
        if not options.token:
            return self._store.version, self._snapshot(resource.plural, keep=options.limit > 0)
        token = _decode(options.token)
        items = self._saved_snapshot(resource.plural, token)
        after = bisect_right(items, token.last, key=lambda item: item[0])
        version = self._store.version if token.version == _INCONSISTENT else token.version
        return version, items[after:]

    def _snapshot(self, plural: str, *, keep: bool) -> Items:
        items = self._store.snapshot(plural)
        if keep:
            self._snapshots[plural, self._store.version] = items
            while len(self._snapshots) > _SNAPSHOTS_KEPT:
                self._snapshots.popitem(last=False)
        return items

    def _saved_snapshot(self, plural: str, token: _Token) -> Items:
        if token.version == _INCONSISTENT:
            return self._store.snapshot(plural)
        items = self._snapshots.get((plural, token.version))
        if items is None or token.version < self._store.compacted:
            raise refusals.ListExpired(_TOO_OLD, _encode(_Token(_INCONSISTENT, token.last)))
        return items


def _encode(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode()


def _decode(text: str) -> _Token:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=_Token)
    except (msgspec.MsgspecError, binascii.Error, ValueError) as error:
        raise refusals.bad_request(f"continue key is not valid: {error}") from error

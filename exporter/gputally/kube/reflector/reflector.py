"""What one watch knows between its connections, and what the bytes of the server mean to it."""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from gputally.errors import ApiError, MalformedObject, VersionExpired
from gputally.kube.backoff import Backoff
from gputally.kube.failures import Failure, RequestFailed, error_of, failure_of, is_unavailable
from gputally.kube.reflector.completeness import CompletenessTracker
from gputally.kube.reflector.events import BookmarkEvent, Change, decoder, deletion, identified
from gputally.model.health import WatchHealth
from gputally.model.kube import Kind, Object, Status
from gputally.model.observation import (
    Bookmark,
    Checkpoint,
    Deleted,
    Observation,
    RelistFinished,
    RelistStarted,
    Unavailable,
    Upserted,
)
from gputally.model.units import to_us
from gputally.process.once import Once

logger = logging.getLogger(__name__)

IDLE_SECONDS: Final = 150.0
"""The server sends a bookmark about every minute: two lost ones and some slack."""
WATCH_SECONDS: Final = (300, 600)
"""Responses end after a random time between these, as client-go's do, so that servers can rebalance."""
UNDECODABLE: Final = (ValueError, RecursionError, MalformedObject)


def everything(_: object) -> bool:
    """Keep every object."""
    return True


class Resource(Struct, frozen=True, kw_only=True):
    """What to watch: `path` such as /api/v1/pods, decoded as `type`.

    Objects for which `keep` is False are passed over; it must depend on nothing that changes in an
    object's life, or on things whose loss need not be told, and never raise. `idle_seconds` without a byte end a
    connection: give a resource without bookmarks (core events on most servers) more than 600.

    `without` is what stays unknown while the resource is missing or forbidden, "" for one that is required. `is_first`
    is one that classifies pods, and is accounted before the first of them. `resumes` is one whose watch goes on where
    the process before was: of what has an end, which no listing tells.
    """

    kind: Kind
    path: str
    type: type[Object]
    field_selector: str = ""
    keep: Callable[[Any], bool] = everything
    idle_seconds: float = IDLE_SECONDS
    without: str = ""
    is_first: bool = False
    resumes: bool = False


class Reflector:
    """The state of one watch. `version` is where to resume; "" means: list first."""

    def __init__(
        self,
        resource: Resource,
        health: WatchHealth,
        *,
        clock: Callable[[], int],
        backoff: Backoff,
        resume: Checkpoint | None,
    ) -> None:
        self.resource = resource
        self.health = health
        self.clock = clock
        self.version = resume.version if resume else ""
        self._backoff = backoff
        self._continuity = CompletenessTracker(resume.at_us if resume else None)
        self._decode = decoder(resource.type)
        self._decode_item = msgspec.json.Decoder(resource.type).decode
        self._trouble = Once(logger, f"watch of {resource.kind}", kind=resource.kind)
        self._malformed = Once(logger, f"watch of {resource.kind}", kind=resource.kind)
        self.is_doubtful = resume is not None
        """Whether the server may have been set back since `version` came from it: an earlier process, or connection."""
        self._was_connected = False
        self._went_on = False
        self._as_of_us = 0
        self._waited_seconds = 0.0
        """The longest since a line was complete: what comes in two chunks was waited for as one."""
        self._pause_seconds = 0.0

    def watch_params(self) -> dict[str, str]:
        """The query of a watch from `version`."""
        timeout = self._backoff.random.randint(*WATCH_SECONDS)
        start = {"resourceVersion": self.version, "allowWatchBookmarks": "true", "timeoutSeconds": str(timeout)}
        return self._selected({"watch": "true"} | start)

    def list_params(self) -> dict[str, str]:
        """The query of a listing, which is of no earlier moment than this one: that takes naming no version."""
        return self._selected({})

    def _selected(self, params: dict[str, str]) -> dict[str, str]:
        selector = self.resource.field_selector
        return params | {"fieldSelector": selector} if selector else params

    def newest_params(self) -> dict[str, str]:
        """The query of the least that tells the server's present version."""
        return self._selected({"limit": "1"})

    def confirm(self, newest: str) -> None:
        """The server is at version `newest` now. Raises: VersionExpired if it was further before.

        That is so after etcd was restored from a backup. A watch from a version to come is accepted, and brings nothing
        until the server has come there.
        """
        if newest.isdigit() and self.version.isdigit() and int(newest) < int(self.version):
            raise VersionExpired(f"{self.resource.path}: at version {newest}, was at {self.version}: etcd was restored")
        self.is_doubtful = False

    def connected(self) -> None:
        """A watch is established."""
        self.health.connected = True
        self._is_available()
        if self.health.last_activity_us is None:  # one that resumes may bring nothing for a minute
            self._alive()
        self.health.reconnects += self._was_connected
        self._was_connected = True
        self.health.synced = True
        self._waited_seconds = 0.0
        self._continuity.connected()

    def disconnected(self) -> None:
        """Whatever was established is gone."""
        self.health.connected = False

    def begin_listing(self, *, as_of_us: int) -> RelistStarted:
        """A listing begins that was asked for at `as_of_us`: the server answers from one moment, not before that."""
        self._as_of_us = as_of_us
        return RelistStarted(kind=self.resource.kind, at_us=self.clock())

    def read(self, lines: Iterable[bytes | memoryview], *, waited_seconds: float) -> Iterator[Observation]:
        """What the lines of one chunk say, after such a wait; objects passed over become one Progress at its end.

        Raises: the ApiError that an ERROR event stands for, which says nothing of how far the stream has come.
        """
        at_us = self._alive()
        self._waited_seconds = max(self._waited_seconds, waited_seconds)
        said = [each for each in map(self._decoded, lines) if each]
        if said and not isinstance(said[0], Status):
            self._continuity.arrived(at_us, waited_seconds=self._waited_seconds)
            self._waited_seconds = 0.0
            self._go_on()
        passed_over = False
        for each in said:
            match each:
                case Change() as change:
                    self._came_to(change, at_us)
                    passed_over = change.type != "DELETED" and not self.resource.keep(change.object)
                    if not passed_over:
                        yield self._changed(change, at_us)
                case BookmarkEvent() as bookmark:
                    passed_over = False
                    yield self._marked(bookmark, at_us)
                case Status() as status:
                    raise error_of(status, "", self.resource.path)
        if passed_over:
            yield self._progress(at_us)

    def ended(self, *, waited_seconds: float) -> None:
        """The server has ended the response, after such a wait."""
        self._waited_seconds = 0.0
        self._continuity.arrived(self.clock(), waited_seconds=waited_seconds)

    def read_items(self, items: Iterable[bytes | memoryview]) -> Iterator[Observation]:
        """Some of the objects of a listing."""
        at_us = self._alive()
        since_us = self._continuity.since_us(at_us)
        for item in items:
            self.health.events += 1
            try:
                found = identified(self._decode_item(item))
            except UNDECODABLE as error:
                self._skip(error)
                continue
            if self.resource.keep(found):
                yield Upserted(kind=self.resource.kind, object=found, at_us=at_us, since_us=since_us)

    def listed(self, version: str) -> RelistFinished:
        """The listing is complete."""
        if not version:
            raise RequestFailed(f"{self.resource.path}: a list without resourceVersion", Failure.SERVER)
        at_us = self.clock()
        since_us = self._continuity.interrupted_since_us(at_us)
        self.version = version
        self.is_doubtful = False
        self.health.listings += 1
        self._is_available()
        self.health.synced = True
        self._continuity.listed(self._as_of_us)
        self._go_on()
        return RelistFinished(
            kind=self.resource.kind, version=version, at_us=at_us, since_us=since_us, as_of_us=self._as_of_us
        )

    def failed(self, error: ApiError) -> None:
        """Count, log and decide how to go on."""
        self._went_on = False
        self.is_doubtful = True
        if isinstance(error, VersionExpired):
            self.version = ""
            self.health.expired += 1
        else:
            failure = failure_of(error).value
            self.health.errors[failure] = self.health.errors.get(failure, 0) + 1
        if isinstance(error, RequestFailed):
            self._pause_seconds = error.retry_after_seconds
        if self.resource.without and is_unavailable(error):
            self.health.available = False
            self._trouble.warn(f"{error}; until then {self.resource.without}")
        else:
            self._trouble.warn(str(error))

    def unavailable(self) -> Unavailable | None:
        """What is told instead of a listing, where none can be had."""
        is_told = self.health.available is False and not self.health.synced
        return Unavailable(kind=self.resource.kind, at_us=self.clock()) if is_told else None

    async def rest(self) -> None:
        """Wait before the next connection, unless the last one brought something and ended in peace."""
        if not self._went_on:
            await self._backoff.wait(self._pause_seconds)
        self._went_on = False
        self._pause_seconds = 0.0

    def _alive(self) -> int:
        at_us = self.health.last_activity_us = self.clock()
        return at_us

    def _decoded(self, line: bytes | memoryview) -> Change | BookmarkEvent | Status | None:
        try:
            decoded = self._decode(line)
            if isinstance(decoded, Change):
                self.health.events += 1
        except UNDECODABLE as error:
            self._skip(error)
            return deletion(line, self.resource.type)
        return decoded

    def _skip(self, error: Exception) -> None:
        self.health.malformed += 1
        self._malformed.warn(f"skipped an object that cannot be decoded: {error}")

    def _came_to(self, change: Change, at_us: int) -> None:
        metadata = change.object.metadata
        self.version = metadata.resource_version
        if change.type == "ADDED" and metadata.creation_timestamp:
            self._continuity.created(to_us(metadata.creation_timestamp), at_us)

    def _changed(self, change: Change, at_us: int) -> Upserted | Deleted:
        told = Deleted if change.type == "DELETED" else Upserted
        since_us = self._continuity.since_us(at_us)
        return told(kind=self.resource.kind, object=change.object, at_us=at_us, since_us=since_us)

    def _marked(self, bookmark: BookmarkEvent, at_us: int) -> Bookmark:
        self.health.bookmarks += 1
        self.version = bookmark.version or self.version
        self._continuity.bookmarked(at_us)
        return self._progress(at_us)

    def _progress(self, at_us: int) -> Bookmark:
        since_us = self._continuity.since_us(at_us)
        return Bookmark(kind=self.resource.kind, version=self.version, at_us=at_us, since_us=since_us)

    def _is_available(self) -> None:
        if self.resource.without:
            self.health.available = True

    def _go_on(self) -> None:
        if not self._went_on:
            self._went_on = True
            self._backoff.reset()
            self._trouble.forget()

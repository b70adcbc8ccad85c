"""Lists and watches one resource forever, across broken connections: received lines become observations.

It knows the earliest time at which a newly received change can have happened. The bytes of a change may have waited: at
the server while there was no connection, or in buffers while the process was busy. So a stream is complete up to the
latest of

- the last bytes that the reader waited for, with nothing unread before them and no backlog in progress;
- the creation of the last new object, since changes arrive in the order in which they happen;
- the start of the last complete list.

A backlog may be in progress after a new connection, and after more than a second of reads that did not wait. It ends
with a long wait, a bookmark that the reader waited for, or an object that was created just now. Changes less than half
a second old count as live: reading takes time, and the API's own timestamps are no finer.

Three generators: `run_reflector` runs forever, `listing` is one list, `watch` receives the changes since then, until
the response ends.

A list is requested as a whole and parsed while it arrives, which is fastest: a stream of events (`sendInitialEvents`)
or pages take nearly twice as long. Lines are split here: aiohttp's line reader rejects lines above its buffer limit
(`Chunk too big`), and objects may be larger.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager
from typing import Final

import msgspec
from msgspec import Struct

from gputally.errors import ApiError, VersionExpired
from gputally.kube.api import Api
from gputally.kube.failures import Backoff, Failure, RequestFailed, error_of, failure_of, is_missing, is_unavailable
from gputally.kube.lists import ListItems
from gputally.kube.watch_events import UNDECODABLE, BookmarkEvent, Change, decoder, deletion, identified
from gputally.kube.watched import Paths, Resource
from gputally.model.health import WatchHealth
from gputally.model.kube.meta import Meta, Object, Status
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
from gputally.model.units import US_PER_SECOND, to_us
from gputally.process.log import Once

LIVE_US: Final = US_PER_SECOND // 2
QUIET_SECONDS: Final = 0.25
"""A backlog has no pause this long; lost packets are retransmitted sooner."""
ANSWER_SECONDS: Final = 2.0
"""How long a new connection may be silent before a backlog."""
logger = logging.getLogger(__name__)
WATCH_SECONDS: Final = (300, 600)
"""Watches request a random timeout in this range, as in client-go, so that servers can rebalance."""
Batches = AsyncGenerator[list[Observation], None]
"""The observations of each chunk of bytes, in order; never empty."""


class CompletenessTracker:
    """Tracks up to when (µs) a stream of changes is complete, across interruptions. None: nothing was ever received."""

    def __init__(self, complete_us: int | None = None) -> None:
        self._complete_us = complete_us
        self._caught_up = False
        self._waited = False
        self._quiet_seconds = ANSWER_SECONDS

    def connected(self) -> None:
        """The server starts to send changes since the requested version."""
        self._caught_up = False
        self._quiet_seconds = ANSWER_SECONDS

    def arrived(self, at_us: int, *, waited_seconds: float) -> None:
        """Bytes, or the end of the response, arrived; `waited_seconds` is 0 if they were already buffered."""
        self._waited = waited_seconds > 0
        if waited_seconds >= self._quiet_seconds:
            self._caught_up = True
        elif self.since_us(at_us) < at_us:
            self._caught_up = False
        self._quiet_seconds = QUIET_SECONDS
        if self._waited and self._caught_up:
            self._complete_us = at_us

    def bookmarked(self, at_us: int) -> None:
        """The last bytes contain a bookmark: the server has sent all pending changes."""
        if self._waited:
            self._caught_up = True
            self._complete_us = at_us

    def created(self, created_us: int, at_us: int) -> None:
        """A change received at `at_us` reports a new object that was created at `created_us`."""
        self._complete_us = max(self._complete_us or 0, min(created_us, at_us))
        self._caught_up = self._caught_up or at_us - created_us < LIVE_US

    def listed(self, as_of_us: int) -> None:
        """A list is complete as of `as_of_us`."""
        self._complete_us = as_of_us

    def since_us(self, at_us: int) -> int:
        """The earliest time at which a change received at `at_us` can have happened; `at_us` if it is live."""
        since_us = self.interrupted_since_us(at_us)
        return at_us if since_us is None or at_us - since_us < 2 * LIVE_US else since_us

    def interrupted_since_us(self, at_us: int) -> int | None:
        """The time up to which the stream is complete, minus the tolerance for live changes; None if never.

        0 if that time is in the future, from an earlier process or a wrong server clock, and so has no meaning.
        """
        if self._complete_us is None:
            return None
        return max(0, min(self._complete_us, at_us) - LIVE_US) if self._complete_us < at_us + LIVE_US else 0


class Reflector:
    """The state of one watch. `version` is where it resumes; "" means that it lists first."""

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
        self._paths = Paths(resource)
        self._backoff = backoff
        self._completeness = CompletenessTracker(resume.at_us if resume else None)
        self._decode = decoder(resource.type)
        self._decode_item = msgspec.json.Decoder(resource.type).decode
        self._error_log = Once(logger, f"watch of {resource.kind}", kind=resource.kind)
        self._malformed = Once(logger, f"watch of {resource.kind}", kind=resource.kind)
        self.is_unconfirmed = resume is not None
        """Whether the server may have been restored since it sent `version` to an earlier process or connection."""
        self._was_connected = False
        self._has_progress = False
        self._as_of_us = 0
        self._waited_seconds = 0.0
        """The longest wait since the last complete line, which may arrive in several chunks."""
        self._pause_seconds = 0.0

    @property
    def path(self) -> str:
        """The path in the version of the API that is tried now."""
        return self._paths.now

    def watch_params(self) -> dict[str, str]:
        """The query of a watch from `version`."""
        timeout = self._backoff.random.randint(*WATCH_SECONDS)
        start = {"resourceVersion": self.version, "allowWatchBookmarks": "true", "timeoutSeconds": str(timeout)}
        return self._with_selector({"watch": "true"} | start)

    def list_params(self) -> dict[str, str]:
        """The query of a list; without a version it returns the current state."""
        return self._with_selector({})

    def _with_selector(self, params: dict[str, str]) -> dict[str, str]:
        selector = self.resource.field_selector
        return params | {"fieldSelector": selector} if selector else params

    def newest_params(self) -> dict[str, str]:
        """The query of the smallest response with the server's current version."""
        return self._with_selector({"limit": "1"})

    def confirm(self, newest: str) -> None:
        """The server is at version `newest` now. Raises: VersionExpired if it is older than `version`.

        This happens after etcd was restored from a backup. The server accepts a watch from a future version, but sends
        nothing until it reaches that version.
        """
        if newest.isdigit() and self.version.isdigit() and int(newest) < int(self.version):
            raise VersionExpired(f"{self.path}: at version {newest}, was at {self.version}: etcd was restored")
        self.is_unconfirmed = False

    def connected(self) -> None:
        """A watch is established."""
        self.health.connected = True
        self._set_available()
        if self.health.last_activity_us is None:  # a resumed watch may receive nothing for a minute
            self._touch()
        self.health.reconnects += self._was_connected
        self._was_connected = True
        self.health.synced = True
        self._waited_seconds = 0.0
        self._completeness.connected()

    def disconnected(self) -> None:
        """The connection is closed."""
        self.health.connected = False

    def begin_listing(self, *, as_of_us: int) -> RelistStarted:
        """A list begins, requested at `as_of_us`: it shows the state at one later moment."""
        self._as_of_us = as_of_us
        return RelistStarted(kind=self.resource.kind, at_us=self.clock())

    def read(self, lines: Iterable[bytes | memoryview], *, waited_seconds: float) -> Iterator[Observation]:
        """The observations in the lines of one chunk; filtered objects at its end become one Bookmark.

        Raises: the ApiError of an ERROR event, which does not advance the stream.
        """
        at_us = self._touch()
        self._waited_seconds = max(self._waited_seconds, waited_seconds)
        events = [each for each in map(self._decoded, lines) if each]
        if events and not isinstance(events[0], Status):
            self._completeness.arrived(at_us, waited_seconds=self._waited_seconds)
            self._waited_seconds = 0.0
            self._progressed()
        filtered = False
        for each in events:
            match each:
                case Change() as change:
                    self._advance(change, at_us)
                    observed = self._change(change, at_us)
                    filtered = observed is None
                    if observed:
                        yield observed
                case BookmarkEvent() as bookmark:
                    filtered = False
                    yield self._bookmark(bookmark, at_us)
                case Status() as status:
                    raise error_of(status, "", self.path)
        if filtered:
            yield self._current_bookmark(at_us)

    def ended(self, *, waited_seconds: float) -> None:
        """The server has ended the response."""
        self._waited_seconds = 0.0
        self._completeness.arrived(self.clock(), waited_seconds=waited_seconds)

    def read_items(self, items: Iterable[bytes | memoryview]) -> Iterator[Observation]:
        """Observations of some items of a list."""
        at_us = self._touch()
        since_us = self._completeness.since_us(at_us)
        for item in items:
            self.health.events += 1
            try:
                found = identified(self._decode_item(item))
            except UNDECODABLE as error:
                self._skip(error)
                continue
            if observed := self._upserted(found, at_us, since_us):
                yield observed

    def listed(self, version: str) -> RelistFinished:
        """The list is complete."""
        if not version:
            raise RequestFailed(f"{self.path}: a list without resourceVersion", Failure.SERVER)
        at_us = self.clock()
        since_us = self._completeness.interrupted_since_us(at_us)
        self.version = version
        self.is_unconfirmed = False
        self.health.listings += 1
        self._set_available()
        self.health.synced = True
        self._completeness.listed(self._as_of_us)
        self._progressed()
        return RelistFinished(
            kind=self.resource.kind, version=version, at_us=at_us, since_us=since_us, as_of_us=self._as_of_us
        )

    def failed(self, error: ApiError) -> None:
        """Count and log the error, and decide how to continue."""
        self._has_progress = False
        self.is_unconfirmed = True
        if isinstance(error, VersionExpired):
            self.version = ""
            self.health.expired += 1
        else:
            failure = failure_of(error).value
            self.health.errors[failure] = self.health.errors.get(failure, 0) + 1
        if isinstance(error, RequestFailed):
            self._pause_seconds = error.retry_after_seconds
        if is_missing(error) and self._paths.turn():
            self.version = ""  # another version of the API may not have the same objects
            if not self._paths.were_all_tried:
                self._has_progress = True  # the next one is tried at once
                return
        if self.resource.without and is_unavailable(error):
            self.health.available = False
            self._error_log.warn(f"{error}; until then {self.resource.without}")
        else:
            self._error_log.warn(str(error))

    def unavailable(self) -> Unavailable | None:
        """The observation that replaces a list if the resource is unavailable."""
        is_unlisted = self.health.available is False and not self.health.synced
        return Unavailable(kind=self.resource.kind, at_us=self.clock()) if is_unlisted else None

    async def rest(self) -> None:
        """Wait before the next connection, unless the last one received data and ended without error."""
        if not self._has_progress:
            await self._backoff.wait(self._pause_seconds)
        self._has_progress = False
        self._pause_seconds = 0.0

    def _touch(self) -> int:
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

    def _advance(self, change: Change, at_us: int) -> None:
        metadata = change.object.metadata
        self.version = metadata.resource_version
        if change.type == "ADDED" and metadata.creation_timestamp:
            self._completeness.created(to_us(metadata.creation_timestamp), at_us)

    def _change(self, change: Change, at_us: int) -> Observation | None:
        """None for a filtered object; a deletion always counts."""
        since_us = self._completeness.since_us(at_us)
        if change.type != "DELETED":
            return self._upserted(change.object, at_us, since_us)
        return Deleted(kind=self.resource.kind, object=change.object, at_us=at_us, since_us=since_us)

    def _upserted(self, found: Object, at_us: int, since_us: int) -> Observation | None:
        if self.resource.keep(found):
            return Upserted(kind=self.resource.kind, object=found, at_us=at_us, since_us=since_us)
        return self.resource.brief(found, at_us, since_us) if self.resource.brief else None

    def _bookmark(self, bookmark: BookmarkEvent, at_us: int) -> Bookmark:
        self.health.bookmarks += 1
        self.version = bookmark.version or self.version
        self._completeness.bookmarked(at_us)
        return self._current_bookmark(at_us)

    def _current_bookmark(self, at_us: int) -> Bookmark:
        since_us = self._completeness.since_us(at_us)
        return Bookmark(kind=self.resource.kind, version=self.version, at_us=at_us, since_us=since_us)

    def _set_available(self) -> None:
        if self.resource.without:
            self.health.available = True

    def _progressed(self) -> None:
        if not self._has_progress:
            self._has_progress = True
            self._backoff.reset()
            self._error_log.forget()


class Lines:
    """Joins lines across chunks: in linear time for lines of any length, safe for multi-byte characters."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, chunk: bytes) -> list[memoryview]:
        """The lines that `chunk` completes, without line ends and blank lines.

        They are views into the chunk: copies would take five times as long.
        """
        view, lines, start = memoryview(chunk), list[memoryview](), 0
        while (end := chunk.find(b"\n", start)) >= 0:
            lines.append(view[start:end])
            start = end + 1
        if lines and self._rest:
            lines[0] = memoryview(b"".join((*self._rest, lines[0])))
            self._rest.clear()
        self._rest.append(chunk[start:])
        return [line for line in lines if line]


class Page(Struct, frozen=True):
    """A part of a list, decoded only for its version."""

    metadata: Meta


async def run_reflector(
    api: Api,
    resource: Resource,
    *,
    health: WatchHealth,
    clock: Callable[[], int],
    backoff: Backoff,
    resume: Checkpoint | None = None,
) -> Batches:
    """Observe the objects of `resource` forever; times are by `clock` (µs).

    Starts with a list, or at `resume`. Every ApiError is counted in `health`, logged once and retried. While an
    optional resource is unavailable, each failed list yields `Unavailable`.
    """
    reflector = Reflector(resource, health, clock=clock, backoff=backoff, resume=resume)
    while True:
        with api_errors_handled(reflector):
            async with aclosing(watch(api, reflector) if reflector.version else listing(api, reflector)) as batches:
                async for batch in batches:
                    yield batch
        if unavailable := reflector.unavailable():
            yield [unavailable]
        await reflector.rest()


@contextmanager
def api_errors_handled(reflector: Reflector) -> Iterator[None]:
    """Continue after any ApiError; other exceptions are bugs and end the loop."""
    try:
        yield
    except ApiError as error:
        reflector.failed(error)


async def listing(api: Api, reflector: Reflector) -> Batches:
    """All current objects. Each item is decoded separately, so a malformed one affects no others."""
    resource, requested_us, items = reflector.resource, reflector.clock(), ListItems()
    query = api.stream(reflector.path, reflector.list_params(), split=items.feed, idle_seconds=resource.idle_seconds)
    try:
        async with query as chunks:
            yield [reflector.begin_listing(as_of_us=requested_us)]
            async for chunk in chunks:
                if observations := list(reflector.read_items(chunk)):
                    yield observations
        last = items.end()
    except ValueError as error:
        raise RequestFailed(f"{api.server}{reflector.path}: unexpected response: {error}", Failure.SERVER) from error
    yield [*reflector.read_items(last), reflector.listed(items.version)]


async def watch(api: Api, reflector: Reflector) -> Batches:
    """The changes since the reflector's version, until either side closes the response."""
    resource = reflector.resource
    if reflector.is_unconfirmed:
        newest = await api.get_json(reflector.path, reflector.newest_params(), Page)
        reflector.confirm(newest.metadata.resource_version)
    query = api.stream(reflector.path, reflector.watch_params(), split=Lines().feed, idle_seconds=resource.idle_seconds)
    async with query as chunks:
        with connection(reflector):
            async for lines in chunks:
                observations: list[Observation] = []
                try:
                    observations.extend(reflector.read(lines, waited_seconds=chunks.waited_seconds))
                finally:  # observations before an error count
                    if observations:
                        yield observations
            reflector.ended(waited_seconds=chunks.waited_seconds)


@contextmanager
def connection(reflector: Reflector) -> Iterator[None]:
    """Mark `reflector` as connected, until the block ends."""
    reflector.connected()
    try:
        yield
    finally:
        reflector.disconnected()

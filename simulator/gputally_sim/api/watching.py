"""Serves watches: past changes since a version, then new changes until the timeout or a disconnect."""

import asyncio

from aiohttp import web

from gputally_sim.api import encoding, refusals
from gputally_sim.api.faults import Faults
from gputally_sim.api.requests import ListOptions
from gputally_sim.api.resources import Resource
from gputally_sim.api.store import Change, Store, Stored, Verb
from gputally_sim.api.watch_pipe import WatchPipe

_TOO_FAR_BEHIND = 200_000
"""Maximum pending lines of a slow client; the real server also closes such watches."""


class Watch:
    """One client's stream; it subscribes on construction, so no change is missed before the first write."""

    def __init__(self, store: Store, resource: Resource, options: ListOptions, *, partial: bool) -> None:
        self._store = store
        self._resource = resource
        self._options = options
        self._partial = partial
        self._lines: list[bytes] = []
        self._wake = asyncio.Event()
        self._ended = False
        self._start()
        self._unsubscribe = store.subscribe(resource.plural, self._observe)

    async def serve(self, response: web.StreamResponse, pipe: WatchPipe, faults: Faults, bookmark_s: float) -> None:
        """Write to the prepared `response` until the timeout, `end`, or a disconnect."""
        faults.attach(pipe)
        try:
            async with asyncio.timeout(self._options.timeout_s):
                await self._carry(response, pipe, faults, bookmark_s)
        except TimeoutError:
            await self._finish(response, pipe, faults)
        finally:
            faults.detach(pipe)

    def pipe(self, transport: asyncio.BaseTransport | None) -> WatchPipe:
        """The stream's output for fault injection; `transport` is the connection to abort."""

        def drop() -> None:
            self.end()
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()

        return WatchPipe(self._resource.plural, drop=drop, wake=self._wake.set)

    def end(self) -> None:
        """Finish the response after the pending lines are written."""
        self._ended = True
        self._wake.set()

    def close(self) -> None:
        """Unsubscribe from the store."""
        self._unsubscribe()

    async def _carry(self, response: web.StreamResponse, pipe: WatchPipe, faults: Faults, bookmark_s: float) -> None:
        while True:
            await faults.flowing()
            self._wake.clear()
            lines, self._lines = self._lines, []
            await pipe.carry(lines, response.write)
            if self._ended:
                return
            try:
                async with asyncio.timeout(bookmark_s):
                    await self._wake.wait()
            except TimeoutError:
                await faults.flowing()
                if not pipe.holds_back:
                    await self._write_bookmark(response, faults)

    async def _write_bookmark(self, response: web.StreamResponse, faults: Faults) -> None:
        if self._options.bookmarks and not faults.frozen_bookmarks and not self._lines:
            await response.write(encoding.bookmark(self._resource, self._store.version))

    async def _finish(self, response: web.StreamResponse, pipe: WatchPipe, faults: Faults) -> None:
        """Write pending lines and a final bookmark, as the real server does shortly before a timeout."""
        await faults.flowing()
        lines, self._lines = self._lines, []
        await response.write(b"".join(pipe.released() + lines))
        await self._write_bookmark(response, faults)

    def _start(self) -> None:
        """Queue the initial lines: the current state, or the changes since the client's version."""
        options = self._options
        if options.initial_events or not options.version:
            stored = [each for _, each in self._store.snapshot(self._resource.plural) if options.selects(each.doc)]
            self._lines = [self._line(Verb.ADDED, each) for each in stored]
            if options.initial_events and options.bookmarks:
                self._lines.append(encoding.bookmark(self._resource, self._store.version, initial_events_end=True))
            return
        try:
            for change in self._store.since(self._resource.plural, options.version):
                self._observe(change)
        except refusals.StatusError as error:
            # like the real server, report the error in the stream, not as HTTP status
            self._lines.append(encoding.event_line("ERROR", encoding.encode(error.document())))
            self.end()

    def _observe(self, change: Change) -> None:
        """Queue the event for a change; an object may also enter or leave the selection."""
        selects = self._options.selects
        is_in = change.verb is not Verb.DELETED and selects(change.now.doc)
        was_in = change.before is not None and selects(change.before.doc)
        if is_in:
            self._add(self._line(Verb.MODIFIED if was_in else Verb.ADDED, change.now))
        elif was_in:
            self._add(self._line(Verb.DELETED, _last_selected(change)))

    def _add(self, line: bytes) -> None:
        self._lines.append(line)
        if len(self._lines) > _TOO_FAR_BEHIND:
            self.end()
        self._wake.set()

    def _line(self, verb: Verb, stored: Stored) -> bytes:
        body = encoding.metadata_only(stored) if self._partial else encoding.typed(self._resource, stored)
        return encoding.event_line(verb, body)


def _last_selected(change: Change) -> Stored:
    """The last selected state, with the version of the change. Source: cacher convertToWatchEvent."""
    if change.verb is Verb.DELETED or change.before is None:
        return change.now
    former = change.before.doc
    return Stored({**former, "metadata": {**former["metadata"], "resourceVersion": str(change.version)}})

"""Watches: what happened since a version, then what happens, until either side has had enough."""

import asyncio

from aiohttp import web

from gputally_sim.api import encoding, refusals
from gputally_sim.api.faults import Faults
from gputally_sim.api.requests import ListOptions
from gputally_sim.api.resources import Resource
from gputally_sim.api.store import Change, Store, Stored, Verb
from gputally_sim.api.watch_pipe import WatchPipe

_TOO_FAR_BEHIND = 200_000
"""Lines waiting for a client that does not read; the real server ends such a watch too."""


class Watch:
    """One client's stream: subscribed from construction on, so nothing is missed before the first byte is written."""

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

    async def serve(self, response: web.StreamResponse, tap: WatchPipe, faults: Faults, bookmark_s: float) -> None:
        """Write to the prepared `response` until its time is over, `end` is called or the client goes."""
        faults.attach(tap)
        try:
            async with asyncio.timeout(self._options.timeout_s):
                await self._carry(response, tap, faults, bookmark_s)
        except TimeoutError:
            await self._say_goodbye(response, tap, faults)
        finally:
            faults.detach(tap)

    def tap(self, transport: asyncio.BaseTransport | None) -> WatchPipe:
        """This stream as faults see it; `transport` is the connection they may cut."""

        def drop() -> None:
            self.end()
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()

        return WatchPipe(self._resource.plural, drop=drop, wake=self._wake.set)

    def end(self) -> None:
        """Finish the response once what waits has been written."""
        self._ended = True
        self._wake.set()

    def close(self) -> None:
        """Stop listening."""
        self._unsubscribe()

    async def _carry(self, response: web.StreamResponse, tap: WatchPipe, faults: Faults, bookmark_s: float) -> None:
        while True:
            await faults.flowing()
            self._wake.clear()
            lines, self._lines = self._lines, []
            await tap.carry(lines, response.write)
            if self._ended:
                return
            try:
                async with asyncio.timeout(bookmark_s):
                    await self._wake.wait()
            except TimeoutError:
                await faults.flowing()
                if not tap.holds_back:
                    await self._write_bookmark(response, faults)

    async def _write_bookmark(self, response: web.StreamResponse, faults: Faults) -> None:
        if self._options.bookmarks and not faults.frozen_bookmarks and not self._lines:
            await response.write(encoding.bookmark(self._resource, self._store.version))

    async def _say_goodbye(self, response: web.StreamResponse, tap: WatchPipe, faults: Faults) -> None:
        """What is left and, as the real server does shortly before a timeout, a last bookmark."""
        await faults.flowing()
        lines, self._lines = self._lines, []
        await response.write(b"".join(tap.released() + lines))
        await self._write_bookmark(response, faults)

    def _start(self) -> None:
        """Lines for what the client does not know yet."""
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
            # the real server tells so in the stream, not by the HTTP status
            self._lines.append(encoding.event_line("ERROR", encoding.encode(error.document())))
            self.end()

    def _observe(self, change: Change) -> None:
        """One change as this client sees it: an object may also enter or leave its selection."""
        selects = self._options.selects
        is_in = change.verb is not Verb.DELETED and selects(change.now.doc)
        was_in = change.before is not None and selects(change.before.doc)
        if is_in:
            self._add(self._line(Verb.MODIFIED if was_in else Verb.ADDED, change.now))
        elif was_in:
            self._add(self._line(Verb.DELETED, _left(change)))

    def _add(self, line: bytes) -> None:
        self._lines.append(line)
        if len(self._lines) > _TOO_FAR_BEHIND:
            self.end()
        self._wake.set()

    def _line(self, verb: Verb, stored: Stored) -> bytes:
        body = encoding.metadata_only(stored) if self._partial else encoding.typed(self._resource, stored)
        return encoding.event_line(verb, body)


def _left(change: Change) -> Stored:
    """The last state that was selected, under the version of the change. Source: cacher convertToWatchEvent."""
    if change.verb is Verb.DELETED or change.before is None:
        return change.now
    former = change.before.doc
    return Stored({**former, "metadata": {**former["metadata"], "resourceVersion": str(change.version)}})

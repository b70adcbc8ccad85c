"""Injects faults between the API server and its clients."""

import asyncio
from collections import deque
from http import HTTPStatus

from gputally_sim.api.watch_pipe import WatchPipe

UNDECODABLE = b'{"type":"MODIFIED","object":{"metadata":{"name":"cut sho\n'
_MISTYPED = b'"metadata":{"name":"mistyped","namespace":"default","uid":"mistyped"},"spec":"a string","status":[7]'


class Faults:
    """Switches and one-shot faults, initially off. `plural` "" means every resource."""

    def __init__(self) -> None:
        self.streaming_lists = True
        """False: sendInitialEvents is rejected with 422, as by servers without the WatchList feature."""
        self.frozen_bookmarks = False
        """True: no periodic bookmarks."""
        self.lose_events = False
        """True: the scheduler's Events are lost, as when its queue is full."""
        self.forbidden: set[str] = set()
        """Plural names of resources for which every request gets 403."""
        self._refusals: deque[HTTPStatus] = deque()
        self._misdated: deque[int] = deque()
        self._pipes: set[WatchPipe] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._listing = asyncio.Event()
        self._listing.set()
        self._held = ""

    @property
    def open_watches(self) -> int:
        """The number of open watches."""
        return len(self._pipes)

    def drop_watches(self, plural: str = "") -> None:
        """Abort the connections of all open watches."""
        for pipe in self._on(plural):
            pipe.drop()

    def refuse(self, count: int, code: int = HTTPStatus.TOO_MANY_REQUESTS) -> None:
        """Answer the next `count` API requests with 429, or with 500 and above."""
        self._refusals.extend([HTTPStatus(code)] * count)

    def stop_refusing(self) -> None:
        """Clear the pending rejections."""
        self._refusals.clear()

    def next_refusal(self) -> HTTPStatus | None:
        """Pop the error code to return for this request, if any."""
        return self._refusals.popleft() if self._refusals else None

    def misdate(self, count: int, *, ahead_us: int) -> None:
        """Answer the next `count` requests with a wrong Date header, as if one of several servers had a wrong clock."""
        self._misdated.extend([ahead_us] * count)

    def next_misdate(self) -> int:
        """Pop the Date offset of this response, in µs."""
        return self._misdated.popleft() if self._misdated else 0

    def stall(self) -> None:
        """Keep watches open without sending data; pending events are sent after `resume`."""
        self._flowing.clear()

    def hold_lists(self, plural: str = "") -> None:
        """Block unpaged lists without selectors until `resume`."""
        self._held = plural
        self._listing.clear()

    def resume(self) -> None:
        """End a stall, and unblock lists."""
        self._flowing.set()
        self._listing.set()

    async def listing(self, plural: str) -> None:
        """Wait until lists of this resource are not blocked."""
        if self._held in ("", plural):
            await self._listing.wait()

    async def flowing(self) -> None:
        """Wait until watches are not stalled."""
        await self._flowing.wait()

    def garble(self, plural: str = "") -> None:
        """Send one line of invalid JSON to every open watch."""
        for pipe in self._on(plural):
            pipe.inject(UNDECODABLE)

    def mistype(self, plural: str = "") -> None:
        """Send every open watch one object with a string as spec and a list as status."""
        for pipe in self._on(plural):
            pipe.inject(b'{"type":"MODIFIED","object":{%s}}\n' % _MISTYPED)

    def repeat(self, count: int, plural: str = "") -> None:
        """Send each of the next `count` changes twice to every open watch."""
        for pipe in self._on(plural):
            pipe.repeat(count)

    def reorder(self, count: int, plural: str = "") -> None:
        """Send the next `count` changes to every open watch in reverse order, when all of them are available."""
        for pipe in self._on(plural):
            pipe.reorder(count)

    def trickle(self, count: int, plural: str = "") -> None:
        """Send the next `count` changes to every open watch a few bytes at a time, so that lines are split anywhere."""
        for pipe in self._on(plural):
            pipe.trickle(count)

    def cut(self, plural: str = "") -> None:
        """Close every open watch in the middle of its next change."""
        for pipe in self._on(plural):
            pipe.cut()

    def attach(self, pipe: WatchPipe) -> None:
        """Register an open watch."""
        self._pipes.add(pipe)

    def detach(self, pipe: WatchPipe) -> None:
        """Unregister a closed watch."""
        self._pipes.discard(pipe)

    def _on(self, plural: str) -> list[WatchPipe]:
        return [pipe for pipe in self._pipes if plural in ("", pipe.plural)]

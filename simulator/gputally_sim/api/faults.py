"""What can go wrong between an API server and its clients, to order."""

import asyncio
from collections import deque
from http import HTTPStatus

from gputally_sim.api.watch_pipe import WatchPipe

UNDECODABLE = b'{"type":"MODIFIED","object":{"metadata":{"name":"cut sho\n'
_MISTYPED = b'"metadata":{"name":"mistyped","namespace":"default","uid":"mistyped"},"spec":"a string","status":[7]'


class Faults:
    """Switches and one-shot faults; everything is off to begin with. `plural` "" means every resource."""

    def __init__(self) -> None:
        self.streaming_lists = True
        """False: sendInitialEvents is refused with 422, as by servers without the WatchList feature."""
        self.frozen_bookmarks = False
        """True: no periodic bookmarks."""
        self.lose_events = False
        """True: the scheduler's Events never reach the server, as when its queue is full."""
        self.forbidden: set[str] = set()
        """Plural names of resources to which every access is answered 403."""
        self._refusals: deque[HTTPStatus] = deque()
        self._misdated: deque[int] = deque()
        self._taps: set[WatchPipe] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._listing = asyncio.Event()
        self._listing.set()

    @property
    def open_watches(self) -> int:
        """How many watches are being served."""
        return len(self._taps)

    def drop_watches(self, plural: str = "") -> None:
        """Cut the connections of all open watches, without a farewell."""
        for tap in self._on(plural):
            tap.drop()

    def refuse(self, count: int, code: int = HTTPStatus.TOO_MANY_REQUESTS) -> None:
        """Answer the next `count` API requests with 429, or with 500 and above."""
        self._refusals.extend([HTTPStatus(code)] * count)

    def relent(self) -> None:
        """Refuse no more."""
        self._refusals.clear()

    def next_refusal(self) -> HTTPStatus | None:
        """The answer this request is to get instead of its own; takes it off the list."""
        return self._refusals.popleft() if self._refusals else None

    def misdate(self, count: int, *, ahead_us: int) -> None:
        """Answer the next `count` requests with a Date that is off, as one server of several with a wrong clock."""
        self._misdated.extend([ahead_us] * count)

    def next_misdate(self) -> int:
        """By how much the Date of this answer is ahead; takes it off the list."""
        return self._misdated.popleft() if self._misdated else 0

    def stall(self) -> None:
        """Keep watches open but let no byte through; what happens meanwhile is sent after `resume`."""
        self._flowing.clear()

    def hold_lists(self) -> None:
        """Answer no whole list, without limit and selection, before `resume`."""
        self._listing.clear()

    def resume(self) -> None:
        """End a stall, and answer lists."""
        self._flowing.set()
        self._listing.set()

    async def listing(self) -> None:
        """Return when whole lists are answered."""
        await self._listing.wait()

    async def flowing(self) -> None:
        """Return when nothing is stalled."""
        await self._flowing.wait()

    def garble(self, plural: str = "") -> None:
        """Send one line that is no JSON to every open watch."""
        for tap in self._on(plural):
            tap.inject(UNDECODABLE)

    def mistype(self, plural: str = "") -> None:
        """Send every open watch one object whose spec is a string and whose status is a list."""
        for tap in self._on(plural):
            tap.inject(b'{"type":"MODIFIED","object":{%s}}\n' % _MISTYPED)

    def repeat(self, count: int, plural: str = "") -> None:
        """Send every open watch each of its next `count` changes twice."""
        for tap in self._on(plural):
            tap.repeat(count)

    def reorder(self, count: int, plural: str = "") -> None:
        """Send every open watch its next `count` changes in reverse order, once all of them are there."""
        for tap in self._on(plural):
            tap.reorder(count)

    def trickle(self, count: int, plural: str = "") -> None:
        """Send every open watch its next `count` changes a few bytes at a time, so that lines are cut anywhere."""
        for tap in self._on(plural):
            tap.trickle(count)

    def cut(self, plural: str = "") -> None:
        """Break every open watch in the middle of its next change."""
        for tap in self._on(plural):
            tap.cut()

    def attach(self, tap: WatchPipe) -> None:
        """A watch has been opened."""
        self._taps.add(tap)

    def detach(self, tap: WatchPipe) -> None:
        """A watch has ended."""
        self._taps.discard(tap)

    def _on(self, plural: str) -> list[WatchPipe]:
        return [tap for tap in self._taps if plural in ("", tap.plural)]

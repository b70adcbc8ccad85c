"""What can go wrong between an API server and its clients, to order."""

import asyncio
from collections import deque
from collections.abc import Callable
from http import HTTPStatus

UNDECODABLE = b'{"type":"MODIFIED","object":{"metadata":{"name":"cut sho\n'
_MISTYPED = b'"metadata":{"name":"mistyped","namespace":"default","uid":"mistyped"},"spec":"a string","status":[7]'


class Tap:
    """One open watch as the faults see it. What it is to carry goes through `tampered` first."""

    def __init__(self, plural: str, *, drop: Callable[[], None], wake: Callable[[], None]) -> None:
        self.plural = plural
        self.drop = drop
        self._wake = wake
        self._injected: list[bytes] = []
        self._held: list[bytes] = []
        self._to_repeat = 0
        self._to_reorder = 0

    def inject(self, line: bytes) -> None:
        """Send `line` among the others, now."""
        self._injected.append(line)
        self._wake()

    def repeat(self, count: int) -> None:
        """Send each of the next `count` changes twice."""
        self._to_repeat += count

    def reorder(self, count: int) -> None:
        """Hold the next `count` changes back until all are there and send them last first."""
        self._to_reorder += count

    def tampered(self, lines: list[bytes]) -> list[bytes]:
        """What to send in place of `lines`."""
        sent, self._injected = self._injected, []
        for line in lines:
            sent += self._carry(line)
        return sent

    def _carry(self, line: bytes) -> list[bytes]:
        if self._to_repeat:
            self._to_repeat -= 1
            return [line, line]
        if not self._to_reorder:
            return [line]
        self._held.append(line)
        if len(self._held) < self._to_reorder:
            return []
        released, self._held, self._to_reorder = self._held[::-1], [], 0
        return released


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
        self._taps: set[Tap] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()

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

    def next_refusal(self) -> HTTPStatus | None:
        """The answer this request is to get instead of its own; takes it off the list."""
        return self._refusals.popleft() if self._refusals else None

    def stall(self) -> None:
        """Keep watches open but let no byte through; what happens meanwhile is sent after `resume`."""
        self._flowing.clear()

    def resume(self) -> None:
        """End a stall."""
        self._flowing.set()

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

    def attach(self, tap: Tap) -> None:
        """A watch has been opened."""
        self._taps.add(tap)

    def detach(self, tap: Tap) -> None:
        """A watch has ended."""
        self._taps.discard(tap)

    def _on(self, plural: str) -> list[Tap]:
        return [tap for tap in self._taps if plural in ("", tap.plural)]

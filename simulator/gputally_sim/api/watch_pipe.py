"""The output of one open watch, with fault injection."""

import asyncio
from collections.abc import Awaitable, Callable

_CHUNK = 37
"""Bytes per write in a trickle."""
_CHUNK_SECONDS = 0.001

Write = Callable[[bytes], Awaitable[object]]


class WatchPipe:
    """`carry` writes lines; `drop` aborts the connection, `wake` requests a call of `carry`."""

    def __init__(self, plural: str, *, drop: Callable[[], None], wake: Callable[[], None]) -> None:
        self.plural = plural
        self.drop = drop
        self._wake = wake
        self._injected: list[bytes] = []
        self._held: list[bytes] = []
        self._to_repeat = 0
        self._to_reorder = 0
        self._to_trickle = 0
        self._cuts = False

    @property
    def holds_back(self) -> bool:
        """Whether changes are held back; a bookmark must not overtake them."""
        return bool(self._held)

    def inject(self, line: bytes) -> None:
        """Send the additional line `line` now."""
        self._injected.append(line)
        self._wake()

    def repeat(self, count: int) -> None:
        """Send each of the next `count` changes twice."""
        self._to_repeat += count

    def reorder(self, count: int) -> None:
        """Hold back the next `count` changes and send them in reverse order."""
        self._to_reorder += count

    def trickle(self, count: int) -> None:
        """Send the next `count` lines a few bytes at a time."""
        self._to_trickle += count

    def cut(self) -> None:
        """Send half of the next line and drop the connection."""
        self._cuts = True

    async def carry(self, lines: list[bytes], write: Write) -> None:
        """Write `lines` with the pending faults applied."""
        sent, self._injected = self._injected, []
        for line in lines:
            sent += self._arranged(line)
        while sent and (self._to_trickle or self._cuts):
            await self._write_with_fault(sent.pop(0), write)
        if sent:
            await write(b"".join(sent))

    def released(self) -> list[bytes]:
        """Release the lines that are held back, in reverse order."""
        released, self._held, self._to_reorder = self._held[::-1], [], 0
        return released

    async def _write_with_fault(self, line: bytes, write: Write) -> None:
        if self._cuts:
            await write(line[: len(line) // 2])
            self.drop()
            raise ConnectionResetError
        self._to_trickle -= 1
        for start in range(0, len(line), _CHUNK):
            await write(line[start : start + _CHUNK])
            await asyncio.sleep(_CHUNK_SECONDS)

    def _arranged(self, line: bytes) -> list[bytes]:
        if self._to_repeat:
            self._to_repeat -= 1
            return [line, line]
        if not self._to_reorder:
            return [line]
        self._held.append(line)
        if len(self._held) < self._to_reorder:
            return []
        return self.released()

"""Whole lines out of chunks of bytes.

aiohttp's own line reader refuses lines above its buffer limit ("Chunk too big"); objects have no such limit.
"""


class Lines:
    """Joins what chunks cut apart: time linear in the bytes however long a line is, multi-byte characters safe."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, chunk: bytes) -> list[memoryview]:
        """The lines that `chunk` completes, without their line ends; blank ones are left out.

        They look into the chunk: a copy of each would take five times as long.
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

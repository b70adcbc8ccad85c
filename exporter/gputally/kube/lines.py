"""Splits chunks of bytes into lines.

aiohttp's line reader rejects lines above its buffer limit ("Chunk too big"); objects may be larger.
"""


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

"""Whole lines out of chunks of bytes.

aiohttp's own line reader refuses lines above its buffer limit ("Chunk too big"); objects have no such limit.
"""


class Lines:
    """Joins what chunks cut apart: time linear in the bytes however long a line is, multi-byte characters safe."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without their line ends; blank ones are left out."""
        first, *others = chunk.split(b"\n")
        self._rest.append(first)
        if not others:
            return []
        lines = [b"".join(self._rest), *others]
        self._rest = [lines.pop()]
        return [line for line in lines if line]

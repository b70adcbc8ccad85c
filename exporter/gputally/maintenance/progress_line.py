"""Progress of a long command, on a terminal only."""

import sys
import time
from types import TracebackType
from typing import Final, Self

_EVERY_S: Final = 0.2
_CLEAR: Final = "\r\x1b[K"


class ProgressLine:
    """One line on standard error, renewed a few times a second and cleared at the end."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._next_s = time.monotonic() + _EVERY_S

    def __enter__(self) -> Self:
        return self

    def show(self, text: str) -> None:
        """Show the text, unless one was shown just now."""
        if self._is_terminal and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _EVERY_S
            sys.stderr.write(f"{_CLEAR}{text}")
            sys.stderr.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if self._is_terminal:
            sys.stderr.write(_CLEAR)

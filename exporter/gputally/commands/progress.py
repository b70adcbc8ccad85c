"""Progress of a command on a terminal, and how commands that wait for SQLite end early."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

_CLEAR = "\r\x1b[K"


class ProgressLine:
    """One line on standard error that changes; nothing where that is not a terminal."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self("")

    def __call__(self, text: str) -> None:
        """Show `text` instead of the previous one."""
        if self._is_shown:
            sys.stderr.write(_CLEAR + text)
            sys.stderr.flush()


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Ctrl-C ends the process also during a long call of SQLite. For commands that leave nothing to clean up."""
    with _handled(signal.SIG_DFL, signal.SIGINT):
        yield


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """SIGTERM and a closed terminal end a command as Ctrl-C does: its incomplete files are removed."""
    with _handled(signal.default_int_handler, signal.SIGTERM, signal.SIGHUP):
        yield


@contextmanager
def _handled(handler: Any, *signals: signal.Signals) -> Iterator[None]:  # noqa: ANN401 - as of signal.signal
    before = [(each, signal.signal(each, handler)) for each in signals]
    try:
        yield
    finally:
        for each, previous in before:
            signal.signal(each, previous)

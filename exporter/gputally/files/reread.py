"""Values loaded from files, and reloaded when a file changes."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from gputally.errors import ConfigError

T = TypeVar("T")
_State = tuple[int, int, int] | None

logger = logging.getLogger(__name__)


class Files:
    """The files that a value is loaded from, each with its state before it was read."""

    def __init__(self) -> None:
        self._states: dict[Path, _State] = {}

    def of(self, path: Path) -> Path:
        """Record the state of the file, and return the path; call it before reading, so that no change is missed."""
        self._states.setdefault(path, _state(path))
        return path

    @property
    def changed(self) -> bool:
        """Whether any file was modified, created or deleted."""
        return any(_state(path) != state for path, state in self._states.items())


class Reread(Generic[T]):
    """Returns, when called, the value that `make` loads from the current files; `make` may raise ConfigError.

    If changed files cannot be used, the previous value stays in use. This is logged once for each change.
    """

    def __init__(self, make: Callable[[Files], T]) -> None:
        self._make = make
        self._files = Files()
        self._value = make(self._files)

    def __call__(self) -> T:
        """Check the files for changes, and return the current value."""
        if self._files.changed:
            self._files = Files()
            self._reload()
        return self._value

    def _reload(self) -> None:
        try:
            self._value = self._make(self._files)
        except ConfigError as error:
            logger.error("changed files are not used, the previous contents stay in use: %s", error)  # noqa: TRY400 - a known state
        else:
            logger.info("files have changed and were reloaded")


def _state(path: Path) -> _State:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino

"""What is made of files, and made anew when one of them has changed."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from gputally.errors import ConfigError

T = TypeVar("T")
_State = tuple[int, int, int] | None

logger = logging.getLogger(__name__)


class Files:
    """The files that something is made of, each as it was before it was read."""

    def __init__(self) -> None:
        self._states: dict[Path, _State] = {}

    def of(self, path: Path) -> Path:
        """The same path, remembered; to be called before the file is read, so that no change is missed."""
        self._states.setdefault(path, _state(path))
        return path

    @property
    def changed(self) -> bool:
        """Whether any is another one now, or came, or went."""
        return any(_state(path) != state for path, state in self._states.items())


class Reread(Generic[T]):
    """Called, it gives what `make` makes of its files as they are now; `make` raises ConfigError when it cannot.

    Files that cannot be used leave in force what there was. That is logged once for every change of them.
    """

    def __init__(self, make: Callable[[Files], T]) -> None:
        self._make = make
        self._files = Files()
        self._made = make(self._files)

    def __call__(self) -> T:
        """Look for changes, and give what is in force."""
        if self._files.changed:
            self._files = Files()
            self._try()
        return self._made

    def _try(self) -> None:
        try:
            self._made = self._make(self._files)
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

"""Ensures a single writer: the process that locks the file next to the ledger owns the ledger until it ends."""

import fcntl
import os
import time
from pathlib import Path
from typing import Final

from gputally.errors import LedgerError

_ATTEMPTS: Final = 10
_PAUSE_S: Final = 0.02
"""`is_locked` of another process holds a shared lock for some µs, which must not stop a process that starts."""


def is_locked(path: Path) -> bool | None:
    """Whether a process writes the ledger at `path` now; None if this user may not know. Creates no file."""
    try:
        file = os.open(f"{path}.lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(file)
    return False


class Lock:
    """An exclusive lock for the ledger at `path`; the kernel releases it whenever the process ends.

    The lock is on a separate file: closing any descriptor of the ledger itself would drop SQLite's locks on it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    def acquire(self) -> None:
        """Acquire the lock. Raises: LedgerError if another process holds it or the folder is not writable."""
        try:
            self._file = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._lock()
        except BlockingIOError:
            self.release()
            raise LedgerError(
                f"{self._path}: another process writes this ledger; stop it, or use another ledger"
            ) from None
        except OSError as error:
            self.release()
            raise LedgerError(
                f"{self._path}: cannot be locked: {error.strerror}; choose a directory this user can write to"
            ) from None

    def _lock(self) -> None:
        for _ in range(_ATTEMPTS - 1):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_PAUSE_S)
            else:
                return
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Release the lock. The file stays, since without it two processes could hold the lock."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

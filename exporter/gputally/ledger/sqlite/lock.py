"""Ensures a single writer: the process that locks the file next to the ledger owns the ledger until it ends."""

import fcntl
import os
from pathlib import Path

from gputally.errors import LedgerError


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
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
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

    def release(self) -> None:
        """Release the lock. The file stays, since without it two processes could hold the lock."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

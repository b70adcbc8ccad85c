"""One writer: whoever holds the lock file beside the ledger owns it, until its process ends."""

import fcntl
import os
from pathlib import Path

from gputally.errors import LedgerError


class Lock:
    """An exclusive lock for the ledger at `path`, freed by the kernel when the process dies, however it dies.

    The lock is on a file of its own: closing any descriptor of the ledger itself would drop SQLite's locks on it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    def acquire(self) -> None:
        """Take the lock; LedgerError when another process has it or the folder refuses."""
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
        """Give the lock back; the file stays, since removing it would let two processes hold it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

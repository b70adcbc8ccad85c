"""Ensures a single writer: the process that locks the file next to the ledger owns the ledger until it ends."""

import fcntl
import os
from pathlib import Path
from typing import Final

from gputally.errors import LedgerError

_LOCKS: Final = Path("/proc/locks")


def is_locked(path: Path) -> bool | None:
    """Whether a process holds the lock of the ledger at `path` now; None if the system does not tell.

    It does not try to acquire the lock, which could make a starting aggregator fail. Source: proc(5), /proc/locks.
    """
    try:
        found = Path(f"{path}.lock").stat()
        held = _LOCKS.read_text()
    except FileNotFoundError:
        return False if _LOCKS.exists() else None
    except OSError:
        return None
    file = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    return any("FLOCK" in line and f" {file} " in line for line in held.splitlines())


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

"""Checks passwords against bcrypt hashes, which is slow by design: correct passwords are cached."""

import asyncio
import hmac
import secrets
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

MOST_SOURCES: Final = 16
"""Maximum of client addresses with queued checks."""
MOST_PER_SOURCE: Final = 2
"""Maximum of queued checks of one client address. With one, of two scrapers behind it that scrape at the same moments,
one with a wrong password would always have the only place."""


class TooMany(Exception):
    """Too many passwords are being checked; this one is not."""


class Passwords:
    """Checks one password at a time in a separate thread, so that attempts do not block the event loop.

    Each client address has few checks in the queue, so that a client with many attempts does not block others.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._known: dict[str, bytes] = {}
        self._running: dict[bytes, asyncio.Task[bool]] = {}
        self._queued: Counter[str] = Counter()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="passwords")

    async def verify(self, user: str, password: str, hashes: Mapping[str, str], *, source: str) -> bool:
        """Whether the password is correct. Rejecting an unknown user takes as long as rejecting a wrong password.

        Raises: TooMany.
        """
        hashed = hashes.get(user) or _decoy(hashes)
        fingerprint = hmac.digest(self._key, f"{user}\0{hashed}\0{password}".encode(), "sha256")
        if hmac.compare_digest(self._known.get(user, b""), fingerprint):
            return True
        task = self._running.get(fingerprint)
        if task is None:
            self._enqueue(source)
            task = self._running[fingerprint] = asyncio.create_task(
                self._check(password, hashed, fingerprint, source=source)
            )
        if not await asyncio.shield(task) or user not in hashes:
            return False
        self._known[user] = fingerprint
        return True

    def _enqueue(self, source: str) -> None:
        """Raises: TooMany."""
        queued = self._queued.get(source, 0)
        if queued >= MOST_PER_SOURCE or (not queued and len(self._queued) >= MOST_SOURCES):
            raise TooMany
        self._queued[source] += 1

    def close(self) -> None:
        """Stop checking passwords."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _check(self, password: str, hashed: str, fingerprint: bytes, *, source: str) -> bool:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, _matches, password, hashed)
        finally:
            self._queued.subtract([source])
            self._queued += Counter()  # without addresses that have no checks
            del self._running[fingerprint]


def _decoy(hashes: Mapping[str, str]) -> str:
    """The hash with the highest cost (its second part), so that rejecting a known user never takes longer."""
    return max(hashes.values(), key=lambda hashed: hashed.split("$")[2])


def _matches(password: str, hashed: str) -> bool:
    import bcrypt  # noqa: PLC0415 - only where users have passwords

    try:
        return bcrypt.checkpw(password.encode(), hashed.encode())
    except ValueError:  # longer than bcrypt's limit of 72 bytes
        return False

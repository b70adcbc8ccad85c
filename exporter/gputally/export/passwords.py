"""Passwords against their bcrypt hashes, which is slow on purpose: what was right once is remembered."""

import asyncio
import hmac
import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

MOST_SOURCES: Final = 16
"""Checks that may wait for their turn, one for each address they come from."""


class TooMany(Exception):
    """This password is not checked now."""


class Passwords:
    """One check at a time, in a thread of its own: however many passwords are tried, the loop goes on.

    An address can have one password checked at a time. Otherwise whoever tries many would keep the others waiting.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._known: dict[str, bytes] = {}
        self._under_way: dict[bytes, asyncio.Task[bool]] = {}
        self._sources: set[str] = set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="passwords")

    async def right(self, user: str, password: str, hashes: Mapping[str, str], *, source: str) -> bool:
        """Whether that is the password of the user, who takes as long to be refused when there is no such user.

        Raises: TooMany.
        """
        hashed = hashes.get(user) or _decoy(hashes)
        mark = hmac.digest(self._key, f"{user}\0{hashed}\0{password}".encode(), "sha256")
        if hmac.compare_digest(self._known.get(user, b""), mark):
            return True
        task = self._under_way.get(mark)
        if task is None:
            if source in self._sources or len(self._sources) >= MOST_SOURCES:
                raise TooMany
            self._sources.add(source)
            task = self._under_way[mark] = asyncio.create_task(self._check(password, hashed, mark, source=source))
        if not await asyncio.shield(task) or user not in hashes:
            return False
        self._known[user] = mark
        return True

    def close(self) -> None:
        """Check no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _check(self, password: str, hashed: str, mark: bytes, *, source: str) -> bool:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, _fits, password, hashed)
        finally:
            self._sources.discard(source)
            del self._under_way[mark]


def _decoy(hashes: Mapping[str, str]) -> str:
    """The hash that costs the most (its second part): nobody else's password may take longer to be refused."""
    return max(hashes.values(), key=lambda hashed: hashed.split("$")[2])


def _fits(password: str, hashed: str) -> bool:
    import bcrypt  # noqa: PLC0415 - only where users have passwords

    try:
        return bcrypt.checkpw(password.encode(), hashed.encode())
    except ValueError:  # longer than the 72 bytes that count
        return False

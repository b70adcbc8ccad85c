"""Deterministic names and uids, derived from the seed and the object, independent of unrelated writes."""

from collections import Counter
from hashlib import blake2b
from random import Random
from uuid import UUID

from gputally_sim.documents import Key

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The API server's alphabet for suffixes, without vowels to avoid words. Source: apimachinery pkg/util/rand."""
_SUFFIX_LENGTH = 5


class Naming:
    """With the same seed, the n-th object of a key gets the same uid, and the n-th name of a prefix the same suffix."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._times: Counter[tuple[str, ...]] = Counter()

    def uid(self, plural: str, key: Key) -> str:
        """A version 4 UUID."""
        return str(UUID(bytes=self._digest("uid", plural, *key), version=4))

    def generated(self, prefix: str) -> str:
        """`prefix` plus five characters, as for `generateName`."""
        return prefix + suffix_of(self._digest("name", prefix))

    def _digest(self, *path: str) -> bytes:
        self._times[path] += 1
        text = f"{self._seed}/{self._times[path]}/{'/'.join(path)}"
        return blake2b(text.encode(), digest_size=16).digest()


def suffix_of(digest: bytes, length: int = _SUFFIX_LENGTH) -> str:
    """The first `length` bytes, encoded in the suffix alphabet."""
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:length])


def choices(seed: int, *path: object) -> Random:
    """An independent random stream for `path`."""
    return Random(f"{seed}/{'/'.join(map(str, path))}")  # noqa: S311 - repeatable, not secret

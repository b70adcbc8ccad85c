"""Names and uids that follow from the seed and from what they name, not from the order of unrelated writes."""

from collections import Counter
from hashlib import blake2b
from random import Random
from uuid import UUID

from gputally_sim.documents import Key

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""What the API server makes suffixes of: no vowels, so no words. Source: apimachinery pkg/util/rand."""
_SUFFIX_LENGTH = 5


class Naming:
    """The n-th object of one key gets the same uid in every run of a seed, and so does the n-th name of one prefix."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._times: Counter[tuple[str, ...]] = Counter()

    def uid(self, plural: str, key: Key) -> str:
        """A version 4 UUID."""
        return str(UUID(bytes=self._digest("uid", plural, *key), version=4))

    def generated(self, prefix: str) -> str:
        """`prefix` and five characters, as for `generateName`."""
        return prefix + suffix_of(self._digest("name", prefix))

    def _digest(self, *path: str) -> bytes:
        self._times[path] += 1
        text = f"{self._seed}/{self._times[path]}/{'/'.join(path)}"
        return blake2b(text.encode(), digest_size=16).digest()


def suffix_of(digest: bytes, length: int = _SUFFIX_LENGTH) -> str:
    """The first `length` bytes as characters Kubernetes would use."""
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:length])


def choices(seed: int, *path: object) -> Random:
    """A stream of choices of its own for `path`."""
    return Random(f"{seed}/{'/'.join(map(str, path))}")  # noqa: S311 - to be repeatable, not secret

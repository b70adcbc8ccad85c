"""Digests of what a file says, so that a reformatted or commented file is still the same one."""

import re
from hashlib import sha256

import msgspec


def digest(content: msgspec.Struct) -> str:
    """SHA-256 in hexadecimal of the struct's fields, the same in every process."""
    encoded = msgspec.json.encode(content, enc_hook=_plain, order="deterministic")
    return sha256(encoded).hexdigest()


def _plain(value: object) -> str:
    if isinstance(value, re.Pattern):
        return str(value.pattern)
    raise TypeError(f"{type(value).__name__} has no place in a digest")

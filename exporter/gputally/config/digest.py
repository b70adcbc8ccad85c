"""Digests of parsed content, which formatting and comments do not change."""

from hashlib import sha256

import msgspec


def digest(content: msgspec.Struct) -> str:
    """SHA-256 in hexadecimal of the struct's fields, the same in every process."""
    return sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()

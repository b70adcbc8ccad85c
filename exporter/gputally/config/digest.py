"""Digests of what a file says, so that a reformatted or commented file is still the same one."""

from hashlib import sha256

import msgspec


def digest(content: msgspec.Struct) -> str:
    """SHA-256 in hexadecimal of the struct's fields, the same in every process."""
    return sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()

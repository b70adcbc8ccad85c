"""Tokens and certificates in files: each is read, or reported with what is wrong and how to fix it.

`role` is the flag or field that names the file.
"""

import re
import ssl
from pathlib import Path
from typing import Final

from gputally.errors import ConfigError, Problem
from gputally.files.reread import Files

_ONE_LINE: Final = re.compile(r"[!-~]+")
_PEM: Final = "use readable PEM files without a passphrase"


def token(path: Path, files: Files, *, role: str) -> str:
    """The bearer token that the file holds. Raises: ConfigError."""
    try:
        found = files.of(path).read_bytes().decode("ascii", errors="replace").strip()
    except OSError as error:
        raise _wrong(path, role, _said(error), "use a readable file") from None
    if not _ONE_LINE.fullmatch(found):
        raise _wrong(
            path, role, "is not one line of ASCII without spaces", "use a token such as from openssl rand -hex 32"
        )
    return found


def show(context: ssl.SSLContext, certificate: Path, key: Path | None, files: Files, *, role: str) -> None:
    """Let the context show this certificate; without `key` that is in the same file. Raises: ConfigError."""
    try:
        context.load_cert_chain(files.of(certificate), files.of(key or certificate), password=_no_passphrase)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        raise _wrong(certificate, role, _said(error), _PEM) from None


def trust(context: ssl.SSLContext, authority: Path, files: Files, *, role: str) -> None:
    """Let the context accept certificates that this authority signed. Raises: ConfigError."""
    try:
        context.load_verify_locations(files.of(authority))
    except (OSError, ValueError) as error:
        raise _wrong(authority, role, _said(error), _PEM) from None


def _no_passphrase() -> str:
    """OpenSSL would ask the terminal."""
    raise ValueError("the key has a passphrase")


def _said(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _wrong(path: Path, role: str, text: str, remedy: str) -> ConfigError:
    return ConfigError([Problem(str(path), role, f"cannot be used: {text}; {remedy}")])

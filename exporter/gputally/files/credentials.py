"""Tokens and certificates in files. Errors report the problem and the fix.

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
    """The bearer token in the file. Raises: ConfigError."""
    try:
        found = files.of(path).read_bytes().decode("ascii", errors="replace").strip()
    except OSError as error:
        raise _unusable(path, role, _reason(error), "use a readable file") from None
    if not _ONE_LINE.fullmatch(found):
        raise _unusable(
            path, role, "is not one line of ASCII without spaces", "use a token such as from openssl rand -hex 32"
        )
    return found


def load_certificate(context: ssl.SSLContext, certificate: Path, key: Path | None, files: Files, *, role: str) -> None:
    """Load the certificate of the context; without `key`, the key is in the same file. Raises: ConfigError."""
    try:
        context.load_cert_chain(files.of(certificate), files.of(key or certificate), password=_no_passphrase)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        raise _unusable(certificate, role, _reason(error), _PEM) from None


def trust_authority(context: ssl.SSLContext, authority: Path, files: Files, *, role: str) -> None:
    """Make the context accept certificates signed by this authority. Raises: ConfigError."""
    try:
        context.load_verify_locations(files.of(authority))
    except (OSError, ValueError) as error:
        raise _unusable(authority, role, _reason(error), _PEM) from None


def _no_passphrase() -> str:
    """Otherwise OpenSSL prompts on the terminal."""
    raise ValueError("the key has a passphrase")


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _unusable(path: Path, role: str, text: str, remedy: str) -> ConfigError:
    return ConfigError([Problem(str(path), role, f"cannot be used: {text}; {remedy}")])

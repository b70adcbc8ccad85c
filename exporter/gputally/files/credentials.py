"""Credentials in files, read again when a file changes: tokens, certificates and when they expire.

Errors report the problem and the fix. `role` is the flag or field that names the file. The standard library reads the
expiry only from certificates of a connection.
"""

import logging
import re
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

from gputally.errors import ConfigError, Problem

T = TypeVar("T")
_State = tuple[int, int, int] | None

logger = logging.getLogger(__name__)
_ONE_LINE: Final = re.compile(r"[!-~]+")
_PEM: Final = "use readable PEM files without a passphrase"
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_LONG_FORM: Final = 0x80
_SHORT_YEARS_FROM: Final = 50


class Files:
    """The files that a value is loaded from, each with its state before it was read."""

    def __init__(self) -> None:
        self._states: dict[Path, _State] = {}

    def of(self, path: Path) -> Path:
        """Record the state of the file, and return the path; call it before reading, so that no change is missed."""
        self._states.setdefault(path, _state(path))
        return path

    @property
    def changed(self) -> bool:
        """Whether any file was modified, created or deleted."""
        return any(_state(path) != state for path, state in self._states.items())


class Reread(Generic[T]):
    """Returns, when called, the value that `make` loads from the current files; `make` may raise ConfigError.

    If changed files cannot be used, the previous value stays in use. This is logged once for each change.
    """

    def __init__(self, make: Callable[[Files], T]) -> None:
        self._make = make
        self._files = Files()
        self._value = make(self._files)

    def __call__(self) -> T:
        """Check the files for changes, and return the current value."""
        if self._files.changed:
            self._files = Files()
            self._reload()
        return self._value

    def _reload(self) -> None:
        try:
            self._value = self._make(self._files)
        except ConfigError as error:
            logger.error("changed files are not used, the previous contents stay in use: %s", error)  # noqa: TRY400 - a known state
        else:
            logger.info("files have changed and were reloaded")


def _state(path: Path) -> _State:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


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


class _Element(NamedTuple):
    """An element of ASN.1 in DER: its tag and its content."""

    tag: int
    content: bytes


def expiry_s(path: Path, files: Files) -> int | None:
    """The earliest expiry of a certificate in the PEM file, in seconds since 1970: a chain needs all of them.

    None if it cannot be read: whether the file can be used is for OpenSSL to decide.
    """
    try:
        found = _CERTIFICATE.findall(files.of(path).read_text("ascii", errors="replace"))
        return min((_not_after(ssl.PEM_cert_to_DER_cert(pem)) for pem in found), default=None)
    except (OSError, ValueError, IndexError):
        return None


def _not_after(der: bytes) -> int:
    """Source: RFC 5280, section 4.1: Certificate, TBSCertificate and Validity."""
    [certificate] = _elements(der)
    signed, *_ = _elements(certificate.content)
    fields = [each for each in _elements(signed.content) if each.tag != _VERSION]
    _serial, _algorithm, _issuer, validity, *_ = fields
    _, not_after = _elements(validity.content)
    return _moment(not_after)


def _elements(der: bytes) -> Iterator[_Element]:
    at = 0
    while at < len(der):
        tag, length, at = der[at], der[at + 1], at + 2
        if length & _LONG_FORM:
            size = length & ~_LONG_FORM
            length, at = int.from_bytes(der[at : at + size], "big"), at + size
        yield _Element(tag, der[at : at + length])
        at += length


def _moment(time: _Element) -> int:
    """UTCTime has two digits of the year, for 1950 to 2049; GeneralizedTime has four."""
    text = time.content.decode("ascii")
    if time.tag == _UTC_TIME:
        text = f"{'19' if int(text[:2]) >= _SHORT_YEARS_FROM else '20'}{text}"
    return int(datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp())

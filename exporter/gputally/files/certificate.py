"""When certificates expire. The standard library reads this only from certificates of a connection."""

import re
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from gputally.files.reread import Files

_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_LONG_FORM: Final = 0x80
_SHORT_YEARS_FROM: Final = 50


class _Element(NamedTuple):
    """An element of ASN.1 in DER: its tag and its content."""

    tag: int
    content: bytes


def expiry_s(path: Path, files: Files) -> int | None:
    """The earliest expiry of a certificate in the PEM file, in seconds since 1970: a chain needs all of them.

    None if it cannot be read: whether the file can be used is for OpenSSL to decide.
    """
    try:
        found = _PEM.findall(files.of(path).read_text("ascii", errors="replace"))
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

"""The content of a web configuration file: access of users and clients, and TLS of the server.

Paths are ready to be opened.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class ClientAuth(StrEnum):
    """Whether clients must present certificates, named as in Go's crypto/tls."""

    NONE = "NoClientCert"
    IF_GIVEN = "VerifyClientCertIfGiven"
    REQUIRED = "RequireAndVerifyClientCert"


class TlsVersion(StrEnum):
    """The supported versions; older versions are insecure."""

    TLS12 = "TLS12"
    TLS13 = "TLS13"


class WebTls(Struct, frozen=True, kw_only=True):
    """HTTPS. With `names`, a client's certificate must carry one of them (DNS, IP address, e-mail or URI)."""

    certificate: str
    key: str
    client_auth: ClientAuth = ClientAuth.NONE
    authority: str = ""
    names: frozenset[str] = frozenset()
    oldest: TlsVersion = TlsVersion.TLS12
    newest: TlsVersion = TlsVersion.TLS13


class WebConfig(Struct, frozen=True, kw_only=True):
    """`passwords` are bcrypt hashes and `token_files` files, both by user; without users, everyone has access.

    A user in `tenants` sees only the data of these tenants.
    """

    tls: WebTls | None = None
    headers: Mapping[str, str] = {}
    passwords: Mapping[str, str] = {}
    token_files: Mapping[str, str] = {}
    tenants: Mapping[str, frozenset[str]] = {}
